//! What C programs call: see `include/synthsignal.h` and `man/synthsignal.3`.

use alloc::boxed::Box;
use core::ptr::null_mut;
use core::slice;

use ground::Errno;
use libc::c_int;

use crate::correlator::Correlator;
use crate::fft::{Fft, Size};
use crate::mixer::{INPUTS_MAX, Mixer};
use crate::polyphase::{Polyphase, Refused};
use crate::resampler::Resampler;
use crate::reverb::{Reverb, Room};
use crate::routine::Way;

/// A pointer to what was made, or null and EINVAL.
fn boxed<T, E>(made: Result<T, E>) -> *mut T {
    match made {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(_) => {
            Errno(libc::EINVAL).set();
            null_mut()
        }
    }
}

/// # Safety
/// `made` is null or one that `boxed` gave, and nobody uses it any more.
unsafe fn delete<T>(made: *mut T) {
    if !made.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(made) });
    }
}

/// # Safety
/// So many can be read there, as long as the slice lives; none may be null.
unsafe fn read<'a, T>(at: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(at, count) }
}

/// # Safety
/// So many can be written there, and nobody else uses them as long as the slice lives; none may be null.
unsafe fn write<'a, T>(at: *mut T, count: usize) -> &'a mut [T] {
    if count == 0 {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts_mut(at, count) }
}

fn way(number: c_int) -> Result<Way, Refused> {
    match number {
        0 => Ok(Way::Synthesized),
        1 => Ok(Way::Compiled),
        _ => Err(Refused::Shape),
    }
}

/// # Safety
/// So many taps can be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_filter_new(
    taps: *const i16,
    count: usize,
    phases: usize,
    shift: u32,
    chosen: c_int,
) -> *mut Polyphase {
    // SAFETY: the caller's promise.
    let taps = unsafe { read(taps, count) };
    boxed(way(chosen).and_then(|way| Polyphase::in_way(taps, phases, shift, way)))
}

/// # Safety
/// See `delete`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_filter_delete(filter: *mut Polyphase) {
    // SAFETY: the caller's promise.
    unsafe { delete(filter) };
}

/// # Safety
/// The filter was made and not deleted, and nobody else uses it now; `out` has room for `phases` times as many samples as `in`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_filter(filter: *mut Polyphase, out: *mut i16, input: *const i16, count: usize) {
    // SAFETY: the caller's promise.
    let filter = unsafe { &mut *filter };
    // SAFETY: the caller's promise.
    let (input, output) = unsafe { (read(input, count), write(out, count * filter.phases())) };
    filter.process(input, output);
}

/// # Safety
/// See `ssig_filter`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_filter_is_synthesized(filter: *const Polyphase) -> c_int {
    // SAFETY: the caller's promise.
    (unsafe { &*filter }.way() == Way::Synthesized).into()
}

/// # Safety
/// So many samples can be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_correlator_new(
    pattern: *const i16,
    count: usize,
    shift: u32,
    chosen: c_int,
) -> *mut Correlator {
    // SAFETY: the caller's promise.
    let pattern = unsafe { read(pattern, count) };
    boxed(way(chosen).and_then(|way| Correlator::in_way(pattern, shift, way)))
}

/// # Safety
/// See `delete`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_correlator_delete(correlator: *mut Correlator) {
    // SAFETY: the caller's promise.
    unsafe { delete(correlator) };
}

/// # Safety
/// The correlator was made and not deleted, and nobody else uses it now; both places have so many samples.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_correlate(correlator: *mut Correlator, out: *mut i16, input: *const i16, count: usize) {
    // SAFETY: the caller's promise.
    let (correlator, input, output) = unsafe { (&mut *correlator, read(input, count), write(out, count)) };
    correlator.process(input, output);
}

/// # Safety
/// So many gains can be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_mixer_new(gains: *const i16, count: usize, shift: u32, chosen: c_int) -> *mut Mixer {
    // SAFETY: the caller's promise.
    let gains = unsafe { read(gains, count) };
    boxed(way(chosen).and_then(|way| Mixer::in_way(gains, shift, way)))
}

/// # Safety
/// See `delete`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_mixer_delete(mixer: *mut Mixer) {
    // SAFETY: the caller's promise.
    unsafe { delete(mixer) };
}

/// # Safety
/// The mixer was made and not deleted; there are as many inputs as gains, each with so many samples, and `out` with room for them.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_mix(mixer: *const Mixer, out: *mut i16, inputs: *const *const i16, count: usize) {
    // SAFETY: the caller's promise.
    let (mixer, output) = unsafe { (&*mixer, write(out, count)) };
    // SAFETY: the caller's promise.
    let places = unsafe { read(inputs, mixer.inputs()) };
    let mut signals: [&[i16]; INPUTS_MAX] = [&[]; INPUTS_MAX];
    for (signal, place) in signals.iter_mut().zip(places) {
        // SAFETY: the caller's promise.
        *signal = unsafe { read(*place, count) };
    }
    mixer.process(&signals[..places.len()], output);
}

#[unsafe(no_mangle)]
extern "C" fn ssig_fft_new(points: usize) -> *mut Fft {
    boxed(Size::of(points).map(Fft::new).ok_or(Refused::Shape))
}

/// # Safety
/// See `delete`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_fft_delete(fft: *mut Fft) {
    // SAFETY: the caller's promise.
    unsafe { delete(fft) };
}

/// # Safety
/// The FFT was made and not deleted; both parts have its number of points.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_fft(fft: *const Fft, re: *mut f32, im: *mut f32) {
    // SAFETY: the caller's promise.
    let fft = unsafe { &*fft };
    let points = fft.size().points();
    // SAFETY: the caller's promise.
    let (re, im) = unsafe { (write(re, points), write(im, points)) };
    fft.forward(re, im);
}

/// # Safety
/// As `ssig_fft`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_fft_fixed(fft: *const Fft, re: *mut i16, im: *mut i16) {
    // SAFETY: the caller's promise.
    let fft = unsafe { &*fft };
    let points = fft.size().points();
    // SAFETY: the caller's promise.
    let (re, im) = unsafe { (write(re, points), write(im, points)) };
    fft.forward_fixed(re, im);
}

#[unsafe(no_mangle)]
extern "C" fn ssig_resampler_new(from: u32, to: u32) -> *mut Resampler {
    let step = Resampler::step_of(from, to);
    boxed(if from == 0 || to == 0 { Err(Refused::Shape) } else { Ok(Resampler::new(step)) })
}

/// # Safety
/// See `delete`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_resampler_delete(resampler: *mut Resampler) {
    // SAFETY: the caller's promise.
    unsafe { delete(resampler) };
}

/// # Safety
/// The resampler was made and not deleted, and nobody else uses it now.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_resampler_step(resampler: *mut Resampler, step: u64) {
    // SAFETY: the caller's promise.
    unsafe { &mut *resampler }.set_step(step);
}

/// # Safety
/// As `ssig_resampler_step`; both places have so many samples as said, and the number read can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_resample(
    resampler: *mut Resampler,
    out: *mut i16,
    room: usize,
    input: *const i16,
    count: *mut usize,
) -> usize {
    // SAFETY: the caller's promise.
    let (resampler, count) = unsafe { (&mut *resampler, &mut *count) };
    // SAFETY: the caller's promise.
    let (input, output) = unsafe { (read(input, *count), write(out, room)) };
    let (used, made) = resampler.process(input, output);
    *count = used;
    made
}

#[unsafe(no_mangle)]
extern "C" fn ssig_reverb_new(rate: u32, wider: u32) -> *mut Reverb {
    let is_possible = (1000..=1_000_000).contains(&rate) && wider <= rate;
    boxed(if is_possible { Ok(Reverb::new(&Room::hall(rate as usize, wider as usize))) } else { Err(Refused::Shape) })
}

/// # Safety
/// See `delete`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_reverb_delete(reverb: *mut Reverb) {
    // SAFETY: the caller's promise.
    unsafe { delete(reverb) };
}

/// # Safety
/// The room was made and not deleted, and nobody else uses it now; both places have so many samples.
#[unsafe(no_mangle)]
unsafe extern "C" fn ssig_reverb(reverb: *mut Reverb, out: *mut i32, input: *const i32, count: usize) {
    // SAFETY: the caller's promise.
    let (reverb, input, output) = unsafe { (&mut *reverb, read(input, count), write(out, count)) };
    output.iter_mut().zip(input).for_each(|(out, sample)| *out = reverb.step(*sample));
}
