//! `null.read`, `null.write` and `zero.read`.

use abi::{Errno, nr};
use codestore::Code;
use golden::{Access, bench};
use kernel::FileCall;
use kernel::call::SimpleCode;
use kernel::stream::Stream;
use unix::files::MemoryDevice;

use crate::race::{Around, Race, in_rax, program, range};

pub struct Devices {
    null_read: Code<FileCall>,
    null_write: Code<FileCall>,
    zero_read: Code<FileCall>,
}

impl Devices {
    pub fn new() -> Devices {
        let SimpleCode { null, zero } = SimpleCode::make(bench().makers());
        Devices {
            null_read: null.read.expect("room for code"),
            null_write: null.write.expect("room for code"),
            zero_read: zero.read.expect("room for code"),
        }
    }

    pub fn step(&mut self, race: &mut Race) {
        let mut bytes = race.bytes(&[]) as u64;
        let address = program().buffer(&mut race.random, bytes as usize);
        if race.random.once_in(20) {
            bytes = race.random.pick(&[u64::MAX, 1 << 63, i64::MAX as u64, 1 << 62, 1 << 40, 1 << 32]);
        }
        program().scramble(&mut race.random, address, bytes.min(300_000) as usize);
        let around = Around::take(address, bytes.min(300_000) as usize);
        let buffer = (address, bytes);
        let range = range(address, bytes);
        let (result, expected) = match race.random.below(3) {
            0 => {
                let twin = |race: &Race| MemoryDevice::Null.read(&race.io(), range?);
                let outcome = race.file_call("null.read", self.null_read.entry().address(), nr::READ, buffer, twin);
                (outcome.result, range.map(|_| 0))
            }
            1 => {
                let twin = |race: &Race| MemoryDevice::Null.write(&race.io(), range?);
                let outcome = race.file_call("null.write", self.null_write.entry().address(), nr::WRITE, buffer, twin);
                (outcome.result, range.map(|range| range.bytes))
            }
            _ => {
                let twin = |race: &Race| MemoryDevice::Zero.read(&race.io(), range?);
                let outcome = race.file_call("zero.read", self.zero_read.entry().address(), nr::READ, buffer, twin);
                let zeroed = range.and_then(|range| {
                    let reachable = program().reachable(address, range.bytes, Access::Write);
                    if reachable == 0 && range.bytes > 0 { Err(Errno::EFAULT) } else { Ok(reachable) }
                });
                // A routine may give zeros before it finds that the range leaves the program.
                let reach = program().reachable(address, bytes.min(65536) as usize, Access::Write);
                around.check(race, &vec![0; zeroed.unwrap_or(0)], &vec![0; if zeroed.is_err() { reach } else { 0 }]);
                race.same("result of zero.read", outcome.result, in_rax(zeroed.map(|bytes| bytes as u64)));
                return;
            }
        };
        around.check(race, &[], &[]);
        race.same("result of /dev/null", result, in_rax(expected.map(|bytes| bytes as u64)));
    }
}
