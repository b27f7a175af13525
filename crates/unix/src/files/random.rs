//! Random bytes: getrandom, /dev/random, /dev/urandom.
//!
//! A stream cipher makes them from a key that it replaces at each step, before anybody sees what came with it, and what was
//! given is forgotten: who learns the state learns nothing of what was given before (fast key erasure).

use core::fmt;

use abi::Errno;
use kernel::stream::{Io, UserRange};
use machine::{KernelCell, Machine, PAGE_BYTES};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const KEY_BYTES: usize = 32;
/// What the cipher makes in one go, with vectors of four blocks.
const STEP_BYTES: usize = 256;
/// After so many bytes the machine's own source is asked again.
const SEED_BYTES: u64 = 1 << 20;
/// Larger wishes get a key of their own and go past the store.
const STORE_BYTES: usize = STEP_BYTES - KEY_BYTES;
const PIECE_BYTES: usize = 1024;

/// The system's source of random bytes.
pub struct Random(KernelCell<State>);

struct State {
    key: [u8; KEY_BYTES],
    store: [u8; STORE_BYTES],
    /// Bytes of the store that were given, and are 0 now.
    given: usize,
    /// Bytes until the machine is asked again.
    until_seed: u64,
}

impl Default for Random {
    /// A source that asks the machine before it gives anything.
    fn default() -> Random {
        let (key, store) = ([0; KEY_BYTES], [0; STORE_BYTES]);
        Random(KernelCell::new(State { key, store, given: STORE_BYTES, until_seed: 0 }))
    }
}

impl Random {
    /// Fills `into`, which is the kernel's own.
    pub fn fill(&self, machine: &dyn Machine, into: &mut [u8]) {
        let mut state = self.0.borrow_mut();
        if into.len() > STORE_BYTES {
            state.branch(machine, into.len() as u64).fill_bytes(into);
        } else {
            state.take(machine, into);
        }
    }

    /// A generator with a key of its own, for `bytes` bytes.
    fn branch(&self, machine: &dyn Machine, bytes: u64) -> ChaCha20Rng {
        self.0.borrow_mut().branch(machine, bytes)
    }
}

/// One source is another only if it is the same.
impl PartialEq for Random {
    fn eq(&self, other: &Random) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for Random {}

/// The state is nobody's business.
impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

impl State {
    fn branch(&mut self, machine: &dyn Machine, bytes: u64) -> ChaCha20Rng {
        let mut key = [0; KEY_BYTES];
        self.take(machine, &mut key);
        self.until_seed = self.until_seed.saturating_sub(bytes);
        let generator = ChaCha20Rng::from_seed(key);
        forget(&mut key);
        generator
    }

    fn take(&mut self, machine: &dyn Machine, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            if self.given == STORE_BYTES {
                self.step(machine);
            }
            done += self.give(&mut into[done..]);
        }
    }

    /// Gives what the store still has of the wish.
    fn give(&mut self, into: &mut [u8]) -> usize {
        let bytes = into.len().min(STORE_BYTES - self.given);
        let taken = &mut self.store[self.given..self.given + bytes];
        into[..bytes].copy_from_slice(taken);
        forget(taken);
        self.given += bytes;
        bytes
    }

    /// A new key, and a store of bytes that it does not tell.
    fn step(&mut self, machine: &dyn Machine) {
        if self.until_seed == 0 {
            for part in self.key.chunks_exact_mut(8) {
                let word = machine.random().to_le_bytes();
                part.iter_mut().zip(word).for_each(|(byte, fresh)| *byte ^= fresh);
            }
            self.until_seed = SEED_BYTES;
        }
        self.advance();
    }

    fn advance(&mut self) {
        let mut made = [0; STEP_BYTES];
        ChaCha20Rng::from_seed(self.key).fill_bytes(&mut made);
        self.key.copy_from_slice(&made[..KEY_BYTES]);
        self.store.copy_from_slice(&made[KEY_BYTES..]);
        forget(&mut made);
        self.given = 0;
        self.until_seed = self.until_seed.saturating_sub(STORE_BYTES as u64);
    }
}

/// Clears secrets; the compiler may not leave it out.
fn forget(bytes: &mut [u8]) {
    bytes.fill(0);
    core::hint::black_box(bytes);
}

/// Gives as many random bytes as are asked for, but for a signal; between pages others run. Error: `EFAULT` if the first bytes
/// faulted.
pub fn give_random(random: &Random, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
    let is_large = to.bytes > STORE_BYTES;
    let mut branch = is_large.then(|| random.branch(io.machine(), to.bytes as u64));
    // A short wish must not pay for clearing what it does not use.
    let (mut few, mut many);
    let buffer: &mut [u8] = if is_large {
        many = [0; PIECE_BYTES];
        &mut many
    } else {
        few = [0; STORE_BYTES];
        &mut few
    };
    let mut done = 0;
    while done < to.bytes {
        let rest = to.after(done);
        // Pieces end at page boundaries, so that all bytes before a page that is not there are counted.
        let to_page_end = PAGE_BYTES - rest.address.0 as usize % PAGE_BYTES;
        let bytes = rest.bytes.min(buffer.len()).min(to_page_end);
        let piece = &mut buffer[..bytes];
        match &mut branch {
            Some(branch) => branch.fill_bytes(piece),
            None => random.fill(io.machine(), piece),
        }
        let copied = io.copy_out(rest.address, piece);
        forget(piece);
        if let Err(error) = copied {
            return if done > 0 { Ok(done) } else { Err(error) };
        }
        done += bytes;
        if bytes == to_page_end {
            if io.is_interrupted() {
                break;
            }
            io.held().into_iter().for_each(|held| io.scheduler.let_others_run(held));
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state that never asks the machine.
    fn seeded(key: u8) -> State {
        State { key: [key; KEY_BYTES], store: [0; STORE_BYTES], given: STORE_BYTES, until_seed: u64::MAX }
    }

    fn cipher(key: [u8; KEY_BYTES]) -> [u8; STEP_BYTES] {
        let mut made = [0; STEP_BYTES];
        ChaCha20Rng::from_seed(key).fill_bytes(&mut made);
        made
    }

    /// The first block of the cipher with a key and a nonce of zeros (RFC 8439, A.1, vector 1).
    #[test]
    fn the_cipher_is_chacha20() {
        let known = [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28];
        assert_eq!(cipher([0; KEY_BYTES])[..16], known);
    }

    #[test]
    fn a_step_replaces_the_key_and_what_is_given_is_forgotten() {
        let mut state = seeded(7);
        state.advance();
        let made = cipher([7; KEY_BYTES]);
        assert_eq!((&state.key[..], &state.store[..]), made.split_at(KEY_BYTES));
        let mut taken = [0; 16];
        state.give(&mut taken);
        assert_eq!(taken, made[KEY_BYTES..][..16]);
        assert_eq!(state.store[..16], [0; 16]);
        assert_eq!(state.store[16..], made[KEY_BYTES + 16..]);
    }
}
