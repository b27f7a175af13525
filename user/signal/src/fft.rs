//! The fast Fourier transform, of powers of two.

use alloc::vec::Vec;

use crate::design::{cosine, sine};

/// Sizes there can be: powers of two from 2 to 65,536.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    bits: u32,
}

impl Size {
    /// `None`: no power of two, or out of range.
    pub const fn of(points: usize) -> Option<Size> {
        if !points.is_power_of_two() || points < 2 || points > 1 << 16 {
            return None;
        }
        Some(Size { bits: points.trailing_zeros() })
    }

    pub const fn points(self) -> usize {
        1 << self.bits
    }
}

/// Roots of unity for one size. Many threads may use one; what it works on is the caller's.
#[derive(Debug)]
pub struct Fft {
    size: Size,
    float: Roots<f32>,
    fixed: Roots<i16>,
}

/// e^(−πi k / half) for the passes of half = 1, 2, 4, …: those of a pass lie one behind the other, `half` of them from number
/// `half − 1` on, so that a pass reads whole vectors.
#[derive(Debug)]
struct Roots<T> {
    re: Vec<T>,
    im: Vec<T>,
}

impl<T> Roots<T> {
    fn new(size: Size, rounded: impl Fn(f64) -> T) -> Roots<T> {
        let halves = (0..size.bits).map(|pass| 1usize << pass);
        let turns: Vec<f64> = halves.flat_map(|half| (0..half).map(move |k| k as f64 / (2 * half) as f64)).collect();
        Roots {
            re: turns.iter().map(|turns| rounded(cosine(*turns))).collect(),
            im: turns.iter().map(|turns| rounded(-sine(*turns))).collect(),
        }
    }

    fn of_pass(&self, half: usize) -> (&[T], &[T]) {
        (&self.re[half - 1..2 * half - 1], &self.im[half - 1..2 * half - 1])
    }
}

/// With 15 bits of fraction; one itself does not fit, and is the largest there is.
fn fixed(value: f64) -> i16 {
    (value * 32_768.0 + if value < 0.0 { -0.5 } else { 0.5 }).clamp(-32_768.0, 32_767.0) as i16
}

impl Fft {
    pub fn new(size: Size) -> Fft {
        Fft { size, float: Roots::new(size, |value| value as f32), fixed: Roots::new(size, fixed) }
    }

    pub fn size(&self) -> Size {
        self.size
    }

    /// Transforms in place: real and imaginary parts apart. The sum is not divided.
    ///
    /// # Panics
    /// When there are not as many as points.
    pub fn forward(&self, re: &mut [f32], im: &mut [f32]) {
        self.passes(re, im, |half, [a_re, b_re], [a_im, b_im]| {
            let (w_re, w_im) = self.float.of_pass(half);
            pass(a_re, a_im, b_re, b_im, w_re, w_im);
        });
    }

    /// Transforms samples of 16 bits in place. Each of the log₂ n passes halves, rounding, so nothing overflows and the whole is divided by
    /// n. Exactly the same on every machine.
    ///
    /// # Panics
    /// When there are not as many as points.
    pub fn forward_fixed(&self, re: &mut [i16], im: &mut [i16]) {
        self.passes(re, im, |half, [a_re, b_re], [a_im, b_im]| {
            let (w_re, w_im) = self.fixed.of_pass(half);
            pass_fixed(a_re, a_im, b_re, b_im, w_re, w_im);
        });
    }

    /// Decimation in time: pairs of transforms of `half` points become one of twice as many.
    fn passes<T>(&self, re: &mut [T], im: &mut [T], pass: impl Fn(usize, [&mut [T]; 2], [&mut [T]; 2])) {
        let points = self.size.points();
        assert!(re.len() == points && im.len() == points, "an FFT of another size");
        self.reorder(re, im);
        for half in (0..self.size.bits).map(|pass| 1usize << pass) {
            for (re, im) in re.chunks_exact_mut(2 * half).zip(im.chunks_exact_mut(2 * half)) {
                let ((low_re, high_re), (low_im, high_im)) = (re.split_at_mut(half), im.split_at_mut(half));
                pass(half, [low_re, high_re], [low_im, high_im]);
            }
        }
    }

    /// Puts the points in the order of their numbers' bits backwards.
    fn reorder<T>(&self, re: &mut [T], im: &mut [T]) {
        for at in 0..self.size.points() {
            let other = at.reverse_bits() >> (usize::BITS - self.size.bits);
            if at < other {
                re.swap(at, other);
                im.swap(at, other);
            }
        }
    }
}

/// (a, b) becomes (a + w b, a − w b). Six slices, each an argument of its own: so the compiler knows that they do not overlap, and makes
/// vectors.
#[inline(never)]
fn pass(a_re: &mut [f32], a_im: &mut [f32], b_re: &mut [f32], b_im: &mut [f32], w_re: &[f32], w_im: &[f32]) {
    let count = a_re.len();
    let (a_im, b_re, b_im) = (&mut a_im[..count], &mut b_re[..count], &mut b_im[..count]);
    let (w_re, w_im) = (&w_re[..count], &w_im[..count]);
    for k in 0..count {
        let re = b_re[k] * w_re[k] - b_im[k] * w_im[k];
        let im = b_re[k] * w_im[k] + b_im[k] * w_re[k];
        (b_re[k], b_im[k]) = (a_re[k] - re, a_im[k] - im);
        (a_re[k], a_im[k]) = (a_re[k] + re, a_im[k] + im);
    }
}

/// (a, b) becomes ((a + w b) / 2, (a − w b) / 2). A product of 16 bits has 30 and a sign, a sum of two 31: it is halved first.
#[inline(never)]
fn pass_fixed(a_re: &mut [i16], a_im: &mut [i16], b_re: &mut [i16], b_im: &mut [i16], w_re: &[i16], w_im: &[i16]) {
    let count = a_re.len();
    let (a_im, b_re, b_im) = (&mut a_im[..count], &mut b_re[..count], &mut b_im[..count]);
    let (w_re, w_im) = (&w_re[..count], &w_im[..count]);
    let product = |a: i16, b: i16| i32::from(a) * i32::from(b);
    let fit = |value: i32| ((value + (1 << 14)) >> 15).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
    for k in 0..count {
        let re = (product(b_re[k], w_re[k]) >> 1) - (product(b_im[k], w_im[k]) >> 1);
        let im = (product(b_re[k], w_im[k]) >> 1) + (product(b_im[k], w_re[k]) >> 1);
        let (half_re, half_im) = (i32::from(a_re[k]) << 14, i32::from(a_im[k]) << 14);
        (b_re[k], b_im[k]) = (fit(half_re - re), fit(half_im - im));
        (a_re[k], a_im[k]) = (fit(half_re + re), fit(half_im + im));
    }
}
