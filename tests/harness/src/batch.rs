//! Many cases in one boot: a driver script runs each case in its own folder and frames what it left on stdout.
//!
//! The host runs the same driver with the same shell, so a difference is the kernel's.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::inputs;
use crate::process::{Event, Outcome, Running, Silence};
use crate::side::Side;

/// What became of one case on one side.
pub type Ran = Result<Outcome, String>;

/// The shell that runs the driver on both sides.
pub const DRIVER_SHELL: &str = "/bin/busybox";

/// A boot may take this long before the first case begins.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// More output than this from one case is cut: a runaway must not fill the host's memory.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// Arguments: the folder of the tests, then the numbers of the cases.
const DRIVER: &str = r#"R=$1; shift; B=/bin/busybox
run_case() {
    i=$1
    printf '\001BEGIN %s\n' "$i"
    d=$R/run/$i
    $B mkdir -p "$d"
    cd "$d"
    while read f; do $B cp "$R/in/$f" .; done <"$R/cases/$i.with"
    read shell <"$R/cases/$i.shell"
    path=/usr/bin:/bin:$R/bin
    case $shell in
    busybox) set -- $B sh; path=$R/bb:$R/bin ;;
    *) set -- /bin/$shell ;;
    esac
    $B env -i PATH="$path" LC_ALL=C TZ=UTC HOME=/ R="$R" "$@" "$R/cases/$i.sh" >"$d.out" 2>"$d.err" </dev/null
    s=$?
    cd "$R"
    printf '\001END %s %s %s %s\n' "$i" "$s" "$($B wc -c <"$d.out")" "$($B wc -c <"$d.err")"
    $B cat "$d.out" "$d.err"
    printf '\001DONE %s\n' "$i"
    $B chmod -R u+rwx "$d"
    $B rm -rf "$d" "$d.out" "$d.err"
}
$B mkdir -p "$R/bb" "$R/run"
$B --install -s "$R/bb"
umask 022
for n in "$@"; do run_case "$n"; done
"#;

/// Writes driver, inputs and cases into `home`, the folder of the tests on one side.
///
/// # Errors
/// A sentence when a file cannot be written.
pub fn lay_out(home: &Path, cases: &[Case]) -> Result<(), String> {
    let tell = |error: std::io::Error| format!("cannot write below {}: {error}", home.display());
    for folder in ["in", "cases", "bin"] {
        fs::create_dir_all(home.join(folder)).map_err(tell)?;
    }
    fs::write(home.join("driver.sh"), DRIVER).map_err(tell)?;
    for (name, bytes) in inputs::all() {
        fs::write(home.join("in").join(name), bytes).map_err(tell)?;
    }
    for (index, case) in cases.iter().enumerate() {
        let file = |end: &str| home.join("cases").join(format!("{index}.{end}"));
        fs::write(file("sh"), &case.script).map_err(tell)?;
        fs::write(file("shell"), format!("{}\n", case.shell.word())).map_err(tell)?;
        fs::write(file("with"), case.with.iter().map(|name| format!("{name}\n")).collect::<String>()).map_err(tell)?;
    }
    Ok(())
}

/// Runs the cases with these numbers in order, in as few boots as it takes: a case that hangs or ends the machine
/// fails, and the cases after it go into a new boot.
pub fn run(side: &Side, numbers: &[usize], case_limit: Duration) -> Vec<(usize, Ran)> {
    let mut results: Vec<(usize, Ran)> = Vec::new();
    let mut left = numbers;
    while !left.is_empty() {
        let (done, story) = one_boot(side, left, case_limit);
        let count = done.len();
        let began = done.last().is_some();
        results.extend(done);
        left = &left[count..];
        let Some(story) = story else { break };
        if let Some((&stuck, after)) = left.split_first() {
            results.push((stuck, Err(story.text.clone())));
            left = after;
            if !began && !story.case_began {
                // The machine does not come up: more tries would only take time.
                let reason = format!("{}: not tried, the machine did not come up before", side.name());
                results.extend(left.iter().map(|&number| (number, Err(reason.clone()))));
                break;
            }
        }
    }
    results
}

/// Why a boot ended before its last case.
struct Interruption {
    text: String,
    case_began: bool,
}

fn one_boot(side: &Side, numbers: &[usize], case_limit: Duration) -> (Vec<(usize, Ran)>, Option<Interruption>) {
    let whole = BOOT_LIMIT + case_limit * numbers.len() as u32;
    let home = side.home().display().to_string();
    let mut args = vec!["sh".to_string(), format!("{home}/driver.sh"), home];
    args.extend(numbers.iter().map(usize::to_string));
    let command = side.command(DRIVER_SHELL, &args, whole);
    let mut running = match Running::start(command, Vec::new()) {
        Ok(running) => running,
        Err(text) => return (Vec::new(), Some(Interruption { text, case_began: false })),
    };
    let mut frames = Frames::default();
    let mut stderr = Vec::new();
    let mut done = Vec::new();
    let mut deadline = Instant::now() + BOOT_LIMIT;
    let reason = loop {
        match running.next(deadline) {
            Ok(Event::Stdout(bytes)) => frames.take(&bytes),
            Ok(Event::Stderr(bytes)) => stderr.extend(bytes),
            Ok(Event::StreamEnd) => {}
            Err(Silence::TimedOut) => {
                running.kill();
                break Some(format!("{}: hangs, ended after {} s", side.name(), case_limit.as_secs()));
            }
            Err(Silence::Ended) => {
                let status = running.wait();
                break (done.len() < numbers.len())
                    .then(|| format!("{}: the machine ended (status {status}) in the middle", side.name()));
            }
        }
        loop {
            match frames.next() {
                Ok(Some(Frame::Begin)) => deadline = Instant::now() + case_limit,
                Ok(Some(Frame::End(number, outcome))) if numbers.get(done.len()) == Some(&number) => {
                    done.push((number, Ok(outcome)));
                }
                Ok(None) => break,
                Ok(Some(Frame::End(..))) | Err(()) => {
                    running.kill();
                    let begin = String::from_utf8_lossy(&frames.buffer[..frames.buffer.len().min(300)]).into_owned();
                    let text = format!("{}: the driver's output is damaged near {begin:?}", side.name());
                    return (done, Some(Interruption { text, case_began: frames.begun }));
                }
            }
        }
    };
    let interruption = reason.map(|reason| {
        let tail = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(1500)..]).into_owned();
        let partial = String::from_utf8_lossy(&frames.buffer[..frames.buffer.len().min(600)]).into_owned();
        let text = format!("{reason}\nmessages: {}\nstdout since the last frame: {partial:?}", tail.trim_end());
        Interruption { text, case_began: frames.begun }
    });
    (done, interruption)
}

enum Frame {
    Begin,
    End(usize, Outcome),
}

/// Finds the driver's frames in a stream that comes in pieces.
#[derive(Default)]
struct Frames {
    buffer: Vec<u8>,
    begun: bool,
}

impl Frames {
    fn take(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame; `Ok(None)` when more bytes are needed; `Err` when what is there is no frame.
    fn next(&mut self) -> Result<Option<Frame>, ()> {
        let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') else {
            return if self.buffer.len() > 200 { Err(()) } else { Ok(None) };
        };
        let line = std::str::from_utf8(&self.buffer[..end]).map_err(drop)?.to_string();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["\u{1}BEGIN", _] => {
                self.buffer.drain(..=end);
                self.begun = true;
                Ok(Some(Frame::Begin))
            }
            ["\u{1}END", number, status, out, err] => {
                let parse = |text: &str| text.parse::<usize>().map_err(drop);
                let (number, status, out, err) = (parse(number)?, parse(status)?, parse(out)?, parse(err)?);
                let body = end + 1;
                let trailer = format!("\u{1}DONE {number}\n").into_bytes();
                let total = body.checked_add(out).and_then(|sum| sum.checked_add(err)).ok_or(())?;
                if out.max(err) > OUTPUT_BYTES_MAX {
                    return Err(());
                }
                if self.buffer.len() < total + trailer.len() {
                    return Ok(None);
                }
                if self.buffer[total..total + trailer.len()] != trailer {
                    return Err(());
                }
                let stdout = self.buffer[body..body + out].to_vec();
                let stderr = self.buffer[body + out..total].to_vec();
                self.buffer.drain(..total + trailer.len());
                self.begun = false;
                Ok(Some(Frame::End(number, Outcome { stdout, stderr, status: status as i32 })))
            }
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_from_single_bytes() {
        let mut frames = Frames::default();
        let mut ends = 0;
        for byte in b"\x01BEGIN 7\n\x01END 7 3 4 2\na\nb\nxy\x01DONE 7\n" {
            frames.take(&[*byte]);
            while let Ok(Some(frame)) = frames.next() {
                if let Frame::End(number, outcome) = frame {
                    assert_eq!((number, outcome.status), (7, 3));
                    assert_eq!(outcome.stdout, b"a\nb\n");
                    assert_eq!(outcome.stderr, b"xy");
                    ends += 1;
                }
            }
        }
        assert_eq!(ends, 1);
    }

    #[test]
    fn a_wrong_length_is_damage_not_an_outcome() {
        let mut frames = Frames::default();
        frames.take(b"\x01END 7 0 3 0\na\nb\nxy\x01DONE 7\n more and more");
        assert!(frames.next().is_err());
        let mut frames = Frames::default();
        frames.take(b"panic: something\n");
        assert!(frames.next().is_err());
    }
}
