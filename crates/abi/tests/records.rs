//! Records survive the way to bytes and back; encoders write what programs read.

use abi::file::{Dirent64, Stat, major, makedev, minor};
use abi::frame::place_frame;
use abi::process::WaitStatus;
use abi::siginfo::{Cause, SEGV_MAPERR, SI_TKILL, SigInfo};
use abi::signal::{SIGCHLD, SIGSEGV, SIGTERM, signal_name};
use abi::tty::Termios;
use abi::{Errno, nr};

#[test]
fn records_come_back_from_their_bytes() {
    let stat = Stat { st_ino: 7, st_mode: 0o100644, st_size: -1, st_mtime_nsec: 9, ..Stat::zeroed() };
    assert_eq!(Stat::from_bytes(&stat.to_bytes()), stat);
    assert_eq!(Termios::from_bytes(&Termios::initial().to_bytes()), Termios::initial());
    for info in [
        SigInfo::kill(SIGTERM, 12, 1000),
        SigInfo { code: SI_TKILL, ..SigInfo::kill(SIGTERM, 12, 1000) },
        SigInfo::kernel(SIGTERM),
        SigInfo::fault(SIGSEGV, SEGV_MAPERR, 0x7fff_0000_1234),
        SigInfo::child(SIGCHLD, 1, 55, 0, 3),
    ] {
        assert_eq!(SigInfo::from_bytes(&info.to_bytes()), info);
    }
    assert_eq!(SigInfo::from_bytes(&[0; 128]).cause, Cause::Kill { pid: 0, uid: 0 });
}

#[test]
fn directory_entries_are_padded_to_eight() {
    let mut out = [0xff; 64];
    let entry = Dirent64 { d_ino: 5, d_off: 1, d_type: 8 };
    assert_eq!(entry.encode(b"abcd", &mut out), Some(24));
    assert_eq!(entry.encode(b"abcde", &mut out[24..]), Some(32));
    assert_eq!(Dirent64::decode(&out), Some((entry, &b"abcd"[..], 24)));
    assert_eq!(Dirent64::decode(&out[24..]), Some((entry, &b"abcde"[..], 32)));
    assert_eq!(entry.encode(b"abcd", &mut out[..23]), None);
    assert_eq!(Dirent64::decode(&[0; 10]), None);
}

#[test]
fn wait_statuses_come_back() {
    let all = [
        (WaitStatus::Exited(3), 0x300),
        (WaitStatus::Killed { signal: 11, core: true }, 0x8b),
        (WaitStatus::Killed { signal: 9, core: false }, 9),
        (WaitStatus::Stopped(20), 0x147f),
        (WaitStatus::Continued, 0xffff),
    ];
    for (status, word) in all {
        assert_eq!(status.encode(), word);
        assert_eq!(WaitStatus::decode(word), Some(status));
    }
}

#[test]
fn signal_frames_are_aligned_like_a_call() {
    for top in 0x7fff_0000..0x7fff_0080 {
        let place = place_frame(top, 836).unwrap();
        assert_eq!((place.frame + 8) % 16, 0);
        assert_eq!(place.fpstate % 64, 0);
        assert!(place.frame + abi::frame::FRAME_BYTES <= place.fpstate);
        assert!(place.fpstate + 836 <= top);
    }
    assert_eq!(place_frame(100, 836), None);
}

#[test]
fn names_answer_for_numbers() {
    assert_eq!(nr::name(nr::OPENAT), Some("openat"));
    assert_eq!(nr::name(400), None);
    assert_eq!(nr::name(u64::MAX), None);
    assert_eq!(signal_name(9), Some("SIGKILL"));
    assert_eq!(signal_name(0), None);
    assert_eq!(Errno::from_number(2), Some(Errno::ENOENT));
    assert_eq!(Errno::ENOENT.message(), "No such file or directory");
    assert_eq!((major(makedev(0x1234, 0x56789)), minor(makedev(0x1234, 0x56789))), (0x1234, 0x56789));
}
