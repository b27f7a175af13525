//! Archives survive the round trip, and no damage to one makes the reader panic or hand out wild ranges.

use bootimage::{Archive, ArchiveError, Attributes, Config, ConfigFlags, FdKind, Kind, Node, Plan, PlanError};

fn config() -> Config {
    Config {
        program: b"/bin/echo".to_vec(),
        argv: vec![b"echo".to_vec(), b"".to_vec(), b"hello world".to_vec()],
        env: vec![b"HOME=/root".to_vec()],
        cwd: b"/".to_vec(),
        hostname: b"synthesis".to_vec(),
        network: b"10.0.2.15/24,via 10.0.2.2".to_vec(),
        fds: [FdKind::Tty, FdKind::Stream, FdKind::Closed],
        rows: 24,
        columns: 80,
        flags: ConfigFlags { strace: true, ..Default::default() },
        epoch_ns: 1_700_000_000_000_000_001,
        tsc_hz: 1_000_000_000,
        umask: 0o22,
        seed: [7; 32],
        user: 1000,
        group: 100,
        groups: vec![27, 4_000_000_000],
        host_user: 1000,
        host_group: 4_000_000_001,
        folders: vec![b"/".to_vec(), b"/tmp/here".to_vec()],
        memory: vec![b"/var/lib".to_vec()],
    }
}

fn plan() -> Plan<Vec<u8>> {
    let mut plan = Plan::default();
    let attributes = Attributes { mode: 0o755, uid: 1, gid: 2, mtime_s: -5, mtime_ns: 9 };
    let mut add = |path: &str, node| plan.insert(path.as_bytes(), attributes, node).unwrap();
    let file = |text: &[u8]| Node::File { bytes: text.len() as u64, source: text.to_vec() };
    add("/", Node::Directory);
    add("/bin", Node::Directory);
    add("/bin/echo", file(&[0xaa; 5000]));
    add("/bin/empty", file(b""));
    add("/bin/a-name-of-echo", Node::HardLink { to: b"/bin/echo".to_vec() });
    add("/bin/zecho", Node::HardLink { to: b"/bin/echo".to_vec() });
    add("/dev", Node::Directory);
    add("/dev/null", Node::CharDevice { major: 1, minor: 3 });
    add("/dev/pipe", Node::Fifo);
    add("/lib", Node::Symlink { target: b"usr/lib".to_vec() });
    add("/text", file(b"some text"));
    plan
}

fn write(plan: &Plan<Vec<u8>>, config: &Config) -> Vec<u8> {
    let encoded = plan.encode(config).unwrap();
    let mut bytes = encoded.head;
    for piece in encoded.pieces {
        bytes.resize(piece.offset as usize, 0);
        bytes.extend(piece.source);
    }
    bytes.resize(encoded.total_bytes as usize, 0);
    bytes
}

#[test]
fn what_was_planned_is_read_back() {
    let bytes = write(&plan(), &config());
    let archive = Archive::parse(&bytes).unwrap();
    assert_eq!(archive.len(), 11);
    assert_eq!(archive.entry(0).unwrap().path, b"/");
    let (index, first) = archive.find(b"/bin/a-name-of-echo").unwrap();
    let Kind::File { data, offset } = first.kind else { panic!("the first name is the file: {first:?}") };
    assert_eq!((data, offset % 4096), (&[0xaa; 5000][..], 0));
    assert_eq!(archive.find(b"/bin/echo").unwrap().1.kind, Kind::HardLink { to: index });
    assert_eq!(archive.find(b"/bin/zecho").unwrap().1.kind, Kind::HardLink { to: index });
    assert_eq!(archive.find(b"/dev/null").unwrap().1.kind, Kind::CharDevice { major: 1, minor: 3 });
    assert_eq!(archive.find(b"/lib").unwrap().1.kind, Kind::Symlink { target: b"usr/lib" });
    let text = archive.find(b"/text").unwrap().1;
    assert_eq!((text.mode, text.uid, text.gid, text.mtime_s, text.mtime_ns), (0o755, 1, 2, -5, 9));
    assert!(matches!(text.kind, Kind::File { data: b"some text", .. }));
    assert!(archive.find(b"/nothing").is_none());
}

#[test]
fn the_configuration_is_read_back() {
    let (config, bytes) = (config(), write(&plan(), &config()));
    let view = Archive::parse(&bytes).unwrap().config();
    assert_eq!(view.argv().collect::<Vec<_>>(), config.argv);
    assert_eq!(view.env().collect::<Vec<_>>(), config.env);
    assert_eq!((view.program, view.cwd, view.hostname), (&b"/bin/echo"[..], &b"/"[..], &b"synthesis"[..]));
    assert_eq!((view.fds, view.flags, view.seed), (config.fds, config.flags, config.seed));
    assert_eq!((view.rows, view.columns, view.umask), (24, 80, 0o22));
    assert_eq!((view.epoch_ns, view.tsc_hz), (config.epoch_ns, config.tsc_hz));
}

#[test]
fn an_impossible_plan_is_refused() {
    let with = |path: &str, node| {
        let mut plan = plan();
        plan.insert(path.as_bytes(), Attributes::default(), node).and_then(|()| plan.encode(&config()).map(|_| ()))
    };
    assert_eq!(with("/no/parent", Node::Fifo), Err(PlanError::NoParent(b"/no/parent".to_vec())));
    assert_eq!(with("/text/below", Node::Fifo), Err(PlanError::NoParent(b"/text/below".to_vec())));
    for bad in ["", "x", "//", "/a/", "/./a", "/a/../b", "/a\0"] {
        assert_eq!(with(bad, Node::Fifo), Err(PlanError::BadPath(bad.as_bytes().to_vec())));
    }
    let dangling = Node::HardLink { to: b"/nothing".to_vec() };
    assert_eq!(with("/link", dangling), Err(PlanError::BadLink(b"/link".to_vec())));
    let nul = Config { argv: vec![b"a\0b".to_vec()], ..config() };
    assert_eq!(plan().encode(&nul).map(|_| ()), Err(PlanError::BadConfig));
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = write(&plan(), &config());
    for length in 0..bytes.len() {
        assert!(Archive::parse(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn other_magic_version_and_counts_are_named() {
    let bytes = write(&plan(), &config());
    let damaged = |offset: usize, value: u32| {
        let mut bytes = bytes.clone();
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        Archive::parse(&bytes).map(|_| ())
    };
    assert_eq!(damaged(0, 0), Err(ArchiveError::BadMagic));
    assert_eq!(damaged(8, 99), Err(ArchiveError::BadVersion(99)));
    assert_eq!(damaged(12, 0), Err(ArchiveError::BadCount(0)));
    assert_eq!(damaged(12, u32::MAX), Err(ArchiveError::BadCount(u32::MAX)));
    assert_eq!(damaged(20, u32::MAX), Err(ArchiveError::BadRegion));
}

#[test]
fn files_that_share_a_page_are_refused() {
    let mut bytes = write(&plan(), &config());
    // "/text" is the last record; let its data start where the first file's does.
    let first = Archive::parse(&bytes).unwrap().data_offset();
    let at = 96 + 10 * 72 + 40;
    bytes[at..at + 8].copy_from_slice(&first.to_le_bytes());
    assert_eq!(Archive::parse(&bytes).map(|_| ()), Err(ArchiveError::BadData { index: 10 }));
}

/// A small deterministic generator (xorshift), so that a failure repeats.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn damage_anywhere_in_the_head_never_panics() {
    let good = write(&plan(), &config());
    let head = Archive::parse(&good).unwrap().data_offset() as usize;
    let interesting = [0, 1, 0x7f, 0x80, 0xff];
    let mut random = Random(0x5eed);
    let mut survived = 0;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.next() % 4 {
            // Only the part in use: the padding is ignored.
            let at = random.next() as usize % head.min(1300);
            let choice = random.next();
            bytes[at] = if choice & 1 == 0 { choice as u8 } else { interesting[choice as usize / 2 % 5] };
        }
        let Ok(archive) = Archive::parse(&bytes) else { continue };
        survived += 1;
        let total: usize = archive
            .entries()
            .map(|entry| if let Kind::File { data, .. } = entry.kind { data.len() } else { entry.path.len() })
            .sum();
        assert!(total <= bytes.len() * 2);
        let view = archive.config();
        assert!(view.argv().count() + view.env().count() <= bytes.len());
    }
    assert!(survived > 0, "harmless damage exists, for example in a path");
}
