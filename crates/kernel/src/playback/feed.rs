//! The accounts of a ring that a device plays over and over: what was written, and what was played. Both count on; a place is what is left
//! of a count modulo the ring.

/// Bytes of a frame of the device's.
const FRAME_BYTES: u64 = 4;

pub struct Feed {
    ring_bytes: usize,
    /// Bytes of it that can be written before the first is played.
    queue_bytes: usize,
    /// Bytes written, with the silence that stands for those that came too late.
    filled: u64,
    played: u64,
}

impl Feed {
    pub fn new(ring_bytes: usize, queue_bytes: usize) -> Feed {
        Feed { ring_bytes, queue_bytes, filled: 0, played: 0 }
    }

    pub fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    /// Bytes that were written and not yet played.
    pub fn queued_bytes(&self) -> u64 {
        self.filled.saturating_sub(self.played)
    }

    /// Nothing is left to be played.
    pub fn is_dry(&self) -> bool {
        self.played >= self.filled
    }

    /// Bytes of silence that were played behind the last that was written.
    pub fn silent_bytes(&self) -> u64 {
        self.played.saturating_sub(self.filled)
    }

    /// Bytes that can be written.
    pub fn room(&self) -> usize {
        self.queue_bytes.saturating_sub(self.queued_bytes() as usize)
    }

    /// The device is at `position`. What lies behind it is played, and made silent by `silence`: places and bytes. True: it has moved.
    ///
    /// Between two looks it has gone round less than once; if it has gone further nobody can tell.
    pub fn advance(&mut self, position: usize, mut silence: impl FnMut(usize, usize)) -> bool {
        let before = self.place(self.played);
        let bytes = (position + self.ring_bytes - before) % self.ring_bytes;
        let to_end = bytes.min(self.ring_bytes - before);
        silence(before, to_end);
        silence(0, bytes - to_end);
        self.played += bytes as u64;
        bytes > 0
    }

    /// Before something is written while the device plays: where it is about to be, or has been, it would not be heard. It goes
    /// `gap` bytes ahead then, but leaves room for something.
    pub fn keep_ahead(&mut self, ahead: usize, gap: usize) {
        let most = self.queue_bytes / 2;
        let ahead = ahead.min(most / 2);
        if self.filled < self.played + ahead as u64 {
            let gap = gap.max(ahead).min(most) as u64;
            self.filled = (self.played + gap).next_multiple_of(FRAME_BYTES);
        }
    }

    /// Writes bytes for which there is room: `write` gets places and parts.
    pub fn fill(&mut self, bytes: &[u8], mut write: impl FnMut(usize, &[u8])) {
        let at = self.place(self.filled);
        let (first, rest) = bytes.split_at(bytes.len().min(self.ring_bytes - at));
        write(at, first);
        if !rest.is_empty() {
            write(0, rest);
        }
        self.filled += bytes.len() as u64;
    }

    fn place(&self, count: u64) -> usize {
        (count % self.ring_bytes as u64) as usize
    }
}
