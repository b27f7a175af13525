//! Requests of any bytes: the system must live, and answer those that make sense as before.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use means::Random;

use super::{Scene, expect};
use crate::process::Running;

const REQUESTS: u32 = 10_000;
const SEED: u64 = 0x5EE1_A9B2_77C3_0D41;

/// A place in the code store: routines begin at whole units.
fn unit(random: &mut Random) -> u64 {
    random.below(1 << 8) * 64 + random.below(2) * random.below(64)
}

/// Numbers as requests have them: small, an address, or anything.
fn number(random: &mut Random) -> u64 {
    match random.below(5) {
        0 | 1 => random.below(12),
        2 => 0xFFFF_FFFF_C000_0000 + unit(random),
        3 => 0x6400_0000 + unit(random),
        _ => random.bits(),
    }
}

/// A request: mostly a sound head with random arguments.
fn request(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    let opcode = if random.below(8) == 0 { random.bits() as u16 } else { random.below(16) as u16 };
    let is_monitor = random.below(4) == 0;
    bytes.extend(if is_monitor { 64u16 } else { opcode }.to_le_bytes());
    bytes.extend(if random.below(16) == 0 { 1u16 } else { 0 }.to_le_bytes());
    let cursor = if random.below(2) == 0 { 0 } else { number(random) };
    bytes.extend(cursor.to_le_bytes());
    if is_monitor {
        bytes.push(random.below(28) as u8);
    }
    for _ in 0..random.below(6) {
        match random.below(3) {
            0 => bytes.extend((number(random) as u32).to_le_bytes()),
            1 => bytes.extend(number(random).to_le_bytes()),
            _ => bytes.push(random.bits() as u8),
        }
    }
    if random.below(50) == 0 {
        bytes.resize(16 + random.below(4081) as usize, 0xA5);
    }
    bytes
}

pub fn random_requests(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let pid = system.running.as_ref().map_or(0, Running::id);
    let path = scene.folder.join("synthesis").join(pid.to_string());
    let mut stream = UnixStream::connect(&path).map_err(|error| format!("cannot connect: {error}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(|error| error.to_string())?;
    let mut random = Random::new(SEED);
    let mut done = 0;
    for number in 0..REQUESTS {
        let request = request(&mut random);
        exchange(&mut stream, &request)
            .map_err(|error| format!("seed {SEED:#x}, request {number} {request:x?}: {error}"))?
            .then(|| done += 1);
    }
    if done < REQUESTS / 4 {
        return Err(format!("only {done} of {REQUESTS} requests made sense"));
    }
    expect(&system.shown(&["ps"])?, &["read fd 5 pipe:["])?;
    // A trace may still run.
    system.shown(&["trace", "--end"])?;
    expect(&system.shown(&["code", "fd:4"])?, &["pipe.write"])
}

/// Whether the request was answered with items.
fn exchange(stream: &mut UnixStream, request: &[u8]) -> Result<bool, String> {
    let failed = |error: std::io::Error| error.to_string();
    stream.write_all(&(request.len() as u32).to_le_bytes()).map_err(failed)?;
    stream.write_all(request).map_err(failed)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(failed)?;
    let mut answer = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut answer).map_err(failed)?;
    Ok(answer.get(4..6) == Some(&[0, 0]))
}
