//! Who is told by a signal that a file became ready (`F_SETOWN`), and by which (`F_SETSIG`).

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hearer {
    #[default]
    Nobody,
    Thread(u32),
    Process(u32),
    Group(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Told {
    pub whom: Hearer,
    /// 0: `SIGIO`, without details.
    pub signal: u32,
    /// The user, real and effective, who said so.
    pub real: u32,
    pub effective: u32,
}

impl Told {
    /// Whether who said so may send signals to a process with these users, real and saved (Linux `sigio_perm`).
    pub fn may_tell(&self, users: [u32; 2]) -> bool {
        self.effective == 0 || [self.effective, self.real].iter().any(|user| users.contains(user))
    }
}
