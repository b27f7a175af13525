//! Behaviour that a pty cannot show: signals, wake-ups, partial output, damage on the line.

use super::termios::{cc, iflag, lflag, oflag};
use super::*;

fn tty() -> Tty {
    Tty::new(64).unwrap()
}

fn tty_with(change: impl FnOnce(&mut Termios)) -> Tty {
    let mut tty = tty();
    let mut termios = *tty.termios();
    change(&mut termios);
    let _ = tty.set_termios(termios);
    tty
}

fn output(tty: &mut Tty) -> Vec<u8> {
    let mut all = vec![0; 4096];
    let count = tty.take_output(&mut all);
    all.truncate(count);
    all
}

fn read(tty: &mut Tty) -> Result<Vec<u8>, ReadOutcome> {
    let mut bytes = vec![0; 4096];
    match tty.program_read(&mut bytes, Patience::None) {
        ReadOutcome::Bytes(count) => Ok(bytes[..count].to_vec()),
        other => Err(other),
    }
}

#[test]
fn a_line_is_readable_when_it_ends() {
    let mut tty = tty();
    assert!(!tty.device_input(b"l").wake_readers);
    assert_eq!(read(&mut tty), Err(ReadOutcome::WouldBlock));
    assert!(!tty.is_readable());
    let effects = tty.device_input(b"s\rnext");
    assert!(effects.wake_readers && effects.output_pending);
    assert_eq!((tty.is_readable(), tty.readable_bytes()), (true, 3));
    assert_eq!(read(&mut tty).unwrap(), b"ls\n");
    assert_eq!(output(&mut tty), b"ls\r\nnext");
}

#[test]
fn control_d_ends_a_file_or_hands_over_what_is_typed() {
    let mut tty = tty();
    let _ = tty.device_input(b"ab\x04\x04");
    assert_eq!(read(&mut tty).unwrap(), b"ab");
    assert_eq!(read(&mut tty), Err(ReadOutcome::Eof));
    assert_eq!(read(&mut tty), Err(ReadOutcome::WouldBlock));
}

#[test]
fn keys_signal_and_flush_unless_noflsh() {
    let mut plain = tty();
    let effects = plain.device_input(b"done\nab\x03");
    assert!(effects.signals.contains(Signal::Interrupt) && effects.wake_writers);
    assert_eq!(read(&mut plain), Err(ReadOutcome::WouldBlock));
    assert_eq!(output(&mut plain), b"^C");

    let mut kept = tty_with(|termios| termios.c_lflag |= lflag::NOFLSH);
    let effects = kept.device_input(b"ab\x1c\x1a\n");
    let signals: Vec<Signal> = effects.signals.iter().collect();
    assert_eq!(signals, [Signal::Quit, Signal::TerminalStop]);
    assert_eq!(read(&mut kept).unwrap(), b"ab\n");
    assert_eq!(output(&mut kept), b"ab^\\^Z\r\n");

    let mut off = tty_with(|termios| termios.c_lflag &= !lflag::ISIG);
    assert!(off.device_input(b"\x03\n").signals.is_empty());
    assert_eq!(read(&mut off).unwrap(), b"\x03\n");
}

#[test]
fn output_is_accepted_as_far_as_there_is_room() {
    let mut tty = tty();
    // 64 bytes: 63 letters, and no room for both bytes of the line end.
    let line = [&[b'x'; 63][..], b"\n"].concat();
    assert_eq!(tty.program_write(&line), 63);
    assert_eq!((tty.unsent_bytes(), tty.is_drained()), (63, false));
    assert_eq!(tty.program_write(b"\n"), 0);
    let mut some = [0; 10];
    assert_eq!(tty.take_output(&mut some), 10);
    assert_eq!(tty.program_write(b"\n"), 1);
    assert_eq!(output(&mut tty).len(), 55);
    assert!(tty.is_drained() && tty.is_writable());
}

#[test]
fn echo_waits_for_room_and_goes_before_new_output() {
    let mut tty = tty();
    assert_eq!(tty.program_write(&[b'x'; 64]), 64);
    let _ = tty.device_input(b"hi\n");
    assert_eq!(output(&mut tty), [b'x'; 64]);
    assert_eq!(tty.program_write(b"out"), 3);
    assert_eq!(output(&mut tty), b"hi\r\nout");
}

#[test]
fn echo_without_room_follows_the_output_that_took_it() {
    let mut tty = tty();
    tty.program_write(&[b'x'; 64]);
    let _ = tty.device_input(b"hi\n");
    assert_eq!(output(&mut tty), [b'x'; 64]);
    assert_eq!(output(&mut tty), b"hi\r\n");
}

#[test]
fn control_s_stops_writers_and_control_q_wakes_them() {
    let mut tty = tty();
    let _ = tty.device_input(b"\x13");
    assert_eq!(tty.program_write(b"x"), 0);
    assert!(tty.is_stopped() && !tty.is_writable());
    assert!(tty.device_input(b"\x11").wake_writers);
    assert_eq!(tty.program_write(b"x"), 1);
}

#[test]
fn the_device_keeps_what_does_not_fit_and_is_told_when_to_resume() {
    let mut tty = tty_with(|termios| (termios.c_iflag, termios.c_lflag) = (0, 0));
    assert_eq!(tty.device_input(&[7; 5000]).accepted, INPUT_BYTES - 1);
    assert!(!tty.device_may_resume());
    assert_eq!(read(&mut tty).unwrap().len(), INPUT_BYTES - 1);
    assert!(tty.device_may_resume());
    assert!(!tty.device_may_resume());
}

#[test]
fn ixoff_asks_the_device_to_pause_and_to_go_on() {
    let mut tty = tty_with(|termios| (termios.c_iflag, termios.c_lflag) = (iflag::IXOFF, 0));
    assert!(tty.device_input(&[7; 4000]).output_pending);
    assert_eq!(output(&mut tty), [0x13]);
    read(&mut tty).unwrap();
    assert_eq!(output(&mut tty), [0x11]);
}

#[test]
fn a_changed_window_is_a_signal_once() {
    let mut tty = tty();
    let size = WindowSize { rows: 24, columns: 80, ..WindowSize::default() };
    assert!(tty.set_window_size(size).signals.contains(Signal::WindowChange));
    assert!(tty.set_window_size(size).signals.is_empty());
    assert_eq!(tty.window_size(), size);
}

#[test]
fn breaks_and_damage_follow_the_flags() {
    let mut plain = tty_with(|termios| (termios.c_iflag, termios.c_lflag) = (0, 0));
    let _ = plain.device_break();
    let _ = plain.device_damaged(b'a');
    assert_eq!(read(&mut plain).unwrap(), b"\0a");
    let flags = iflag::PARMRK | iflag::INPCK;
    let mut marking = tty_with(|termios| (termios.c_iflag, termios.c_lflag) = (flags, 0));
    let _ = marking.device_break();
    let _ = marking.device_damaged(b'a');
    assert_eq!(read(&mut marking).unwrap(), b"\xff\0\0\xff\0a");
    let mut breaking = tty_with(|termios| termios.c_iflag |= iflag::BRKINT | iflag::IGNPAR);
    assert!(breaking.device_break().signals.contains(Signal::Interrupt));
    let _ = breaking.device_damaged(b'a');
    let _ = breaking.device_input(b"\n");
    assert_eq!(read(&mut breaking).unwrap(), b"\n");
}

#[test]
fn a_hung_up_tty_ends_reads_and_takes_nothing() {
    let mut tty = tty();
    let _ = tty.device_input(b"last\n");
    assert!(tty.hang_up().wake_readers);
    assert_eq!(read(&mut tty).unwrap(), b"last\n");
    assert_eq!(read(&mut tty), Err(ReadOutcome::Eof));
    assert_eq!(tty.program_write(b"x"), 0);
    assert_eq!(tty.device_input(b"gone").accepted, 4);
    assert!(tty.is_hung_up() && tty.is_readable());
}

#[test]
fn flushing_forgets_one_direction_or_both() {
    let mut tty = tty_with(|termios| termios.c_oflag &= !oflag::OPOST);
    for (queue, output_left, input_left) in [(Queue::Input, 3, 0), (Queue::Output, 0, 2), (Queue::Both, 0, 0)] {
        let _ = tty.flush(Queue::Both);
        let _ = tty.device_input(b"a\n");
        output(&mut tty);
        tty.program_write(b"out");
        let _ = tty.flush(queue);
        assert_eq!((tty.unsent_bytes(), tty.readable_bytes()), (output_left, input_left));
    }
    assert_eq!(Queue::from_argument(3), None);
    assert_eq!(Flow::from_argument(2), Some(Flow::StopInput));
}

#[test]
fn poll_counts_vmin_only_without_vtime() {
    let mut tty = tty_with(|termios| {
        (termios.c_iflag, termios.c_lflag) = (0, 0);
        termios.c_cc[cc::VMIN] = 3;
    });
    let _ = tty.device_input(b"ab");
    assert!(!tty.is_readable());
    let _ = tty.device_input(b"c");
    assert!(tty.is_readable());
}
