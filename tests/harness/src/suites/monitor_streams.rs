//! What the monitor does with running programs: their streams, live routines, names and memory.

use super::{Scene, expect};

/// Descriptors of `seeing flow`: a sequence of bytes that it checks comes from 3; an alphabet is in 5; what is put into 8
/// comes out at its standard output; 9 is /dev/zero, 10 a file of digits.
///
/// `{GOES_ON}` in the lines waits until some hundred more bytes of the sequence have been sent.
fn flow(scene: &Scene<'_>, more: &[&str], lines: &str) -> Result<String, String> {
    let lines =
        lines.replace("{GOES_ON}", "$sent = calls.clock_nanosleep, 0\nwait calls.clock_nanosleep > $sent + 50\n");
    let text = scene.said_of("flow", more, &format!("wait calls.clock_nanosleep > 20\n{lines}"))?;
    // What its parts send each other must be whole, whatever is done to them.
    if text.contains("broken") { Err(format!("bytes were lost\n{text}")) } else { Ok(text) }
}

pub fn connected(scene: &Scene<'_>) -> Result<(), String> {
    // By hand, by a pump into a gauge, and through a switch that sends a stream to two others.
    let lines = "thread.1.fd.5.get(), thread.1.fd.5.get()\nnew gauge\nconnect thread.1.fd.10 gauge.2.add\nwait gauge.2.read() >= 525\n\
                 gauge.2.read()\nlist stream.3\nnew switch\nset switch.5 = 1\nconnect switch.5.0 thread.1.fd.8\n\
                 connect switch.5.1 gauge.2.add\nconnect thread.1.fd.5 switch.5.send\nwait gauge.2.read() >= 3177\ngauge.2.read()\n\
                 thread.1.fd.6.put('!')\nwait gauge.2.read() >= 3210\ngauge.2.read()\n\
                 set switch.5 = 0\nthread.1.fd.6.put('0'), thread.1.fd.6.put('k')\n{GOES_ON}\
                 jobs\nlist pump\nremove pump.4\nremove stream.1\nlist stream.1\n";
    let text = flow(scene, &["--write"], lines)?;
    expect(
        &text,
        &["98  0x62\n", "pump: pump.4", "out -> gauge.2.add (paste)", "525  0x20d\n", ": 10 got, 0 put, ended"],
    )?;
    // 24 letters from c to z.
    expect(&text, &["\ncall\n", "\n3177  0xc69\n", "\n3210  0xc8a\n", "0k", "job 1: answered 10\njob 2: not yet\n"])
}

pub fn ordered(scene: &Scene<'_>) -> Result<(), String> {
    let lines = "new queue 64\nconnect thread.1.fd.5 queue.1.put\nconnect thread.1.fd.10 queue.1.put\n{GOES_ON}list .\n\
                 $first = queue.1.get(), $first += queue.1.get(), 0\nnew gauge\nconnect queue.1.get gauge.7.add\n\
                 pump.8.turn(100)\ngauge.7.read() + $first\n";
    let text = flow(scene, &[], lines)?;
    expect(&text, &["stream.2.get (call)  out -> monitor.6.enter (call)", "out -> monitor.6.enter (call)  done"])?;
    // Everything came: 26 letters and ten digits, two of which were looked at before.
    expect(&text, &["out -> queue.1.put (call)", "pump: pump.8", "\n34  0x22\n3372  0xd2c\n"])
}

pub fn watched(scene: &Scene<'_>) -> Result<(), String> {
    let lines = "watch thread.1.fd.3\nwait watch.1.calls() > 100\nwatch.1.calls() > 100\nwatch.1.ticks() > watch.1.calls()\ncode fd:3\n\
                 watch thread.2.fd.4.write 200ms\nlist watch\nremove watch.1\n{GOES_ON}code fd:3\nlist watch\nthreads\n";
    let text = flow(scene, &[], lines)?;
    expect(&text, &["of pipe.read: ", "\n1\n1\n", "watch.enter", "of pipe.write: ", " left to Rust", "; Arrive"])?;
    let Some((_, after)) = text.rsplit_once("watch.1 ") else { return Err(text) };
    expect(after, &["pipe.read  made by pipe2"])
}

/// The file under a watch is closed, and another one opened with its code.
pub fn closed(scene: &Scene<'_>) -> Result<(), String> {
    let lines = "watch thread.1.fd.11 20ms\nwatch thread.1.fd.12.write 5ms\n".repeat(20);
    let text = flow(scene, &[], &(lines + "watch thread.1.fd.11\n{GOES_ON}list watch\nthread.1.calls > 0\n"))?;
    expect(&text, &["of pipe.read: ", "of pipe.write: ", "\n1\n"])
}

pub fn bound(scene: &Scene<'_>) -> Result<(), String> {
    let lines = "new gauge\nbind pipe.read.empty gauge.1.add\nwait gauge.1.read() > 10\ngauge.1.read() > 10\nunbind watch.2.told\n\
                 $then = gauge.1.read()\n{GOES_ON}gauge.1.read() == $then\nremove watch.2\n\
                 new queue 2\nbind queue.3.full gauge.1.add\n$then = gauge.1.read()\n\
                 queue.3.put(1), queue.3.put(2), queue.3.put(40), queue.3.put(2)\ngauge.1.read() - $then\n\
                 new gauge\nnew pump\nbind pump.5.done gauge.4.add\nconnect queue.3.get pump.5.in\n\
                 connect pump.5.out gauge.1.add\npump.5.turn(9)\ngauge.4.read()\nremove gauge.4\nqueue.3.put(3), pump.5.turn(9)\n";
    let text = flow(scene, &[], lines)?;
    expect(&text, &["told -> gauge.1.add (call)  of pipe.read", "-1  0xffffffffffffffff\n42  0x2a\n", "\n2\n2\n1\n"])?;
    let held = text.matches("\n1\n").count();
    if held < 2 { Err(format!("the callback was not told, or after it was unbound\n{text}")) } else { Ok(()) }
}

pub fn symbols(scene: &Scene<'_>) -> Result<(), String> {
    let lines = "break 1 one_step\nwait thread.1.rip\nwhere\nstep 1\nx thread.1:steps 1\nunbreak 1 one_step\ncont 1\n{GOES_ON}where\n\
                 names one_s\nthreads\n";
    let text = flow(scene, &[], lines)?;
    expect(&text, &["at a breakpoint at 0x", " (one_step): ", " (one_step + ", "\none_step\n"])
}

pub fn set(scene: &Scene<'_>) -> Result<(), String> {
    // The counter's lowest byte must go on as it was.
    let lines = "stop 1\nset thread.1:(u8)(steps + 6) = 7\nset thread.1.r15 = 0x1234\nthread.1.r15\nx thread.1:steps 1\n\
                 new gauge\nset gauge.1 = 40\ngauge.1.add(2)\n";
    let text = flow(scene, &["--write"], lines)?;
    expect(&text, &["4660  0x1234\n", "  000700", "42  0x2a\n"])?;
    let text = scene.complaints("new nothing\nset gauge.1 = 1\nset thread.1.rax = 1\n")?;
    expect(&text, &["error: this monitor only looks; start it with --write"])
}
