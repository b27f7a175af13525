//! Software locked loops (H. Massalin, C. Pu: *A Brief Overview of the Synthesis Operating System*, section 3.3).
//!
//! A loop watches a stream of events and makes a stream of its own that stays in step with it. Hardware measures differences of phase;
//! software may measure the *frequency* of what comes in, or the *interval* between events, and may adjust the frequency of what it
//! makes, or its interval. That gives four kinds:
//!
//! | measures | adjusts | reacts | example |
//! |---|---|---|---|
//! | frequency | frequency | after a window of events; at once, in the middle of a cycle | an oversampling filter behind a CD player |
//! | frequency | interval | after a window; the pending event moves | a thread's quantum, from its rate of I/O |
//! | interval | frequency | at each event; at once | a clock that follows ticks of another |
//! | interval | interval | at each event; the pending event moves | sector interrupts from a disk's index |
//!
//! ```text
//!   events ─► Measure ─► error ─► filter ─► Oscillator ─► events of its own
//!               │          ▲  (Gains)           │
//!               │          └──── residue ◄──────┘    ratio × events in − events out: the phase
//!               └─► Watch: locked, lost, silent
//! ```
//! - [`Loop`] is the whole; [`by_frequency`] and [`by_interval`] say what it measures, [`Adjust`] what it adjusts.
//! - [`Gains`] are of first order (the frequency is followed) or of second order (the phase, too, and without a lasting error).
//!   Gains that would not settle cannot be made.
//! - [`Steering`] is the loop between two devices joined by a queue: the queue's fill is the residue.
//! - [`LowPass`] and [`Straight`] are a filter and a law alone, for those in whom nothing leads back.
//!
//! Time is counted in ticks of the caller's clock. Numbers are integers and fixed point. A step is a few multiplications and divisions,
//! never waits and never allocates.
//!
//! ```
//! use lockedloop::{Adjust, Frequency, Gains, Loop, Ratio, Settings, State, by_interval};
//!
//! let settings = Settings::new(Frequency::of(75, 1_000_000_000), Ratio::of(4, 1), Gains::second_order(3).unwrap());
//! let mut quarters = Loop::new(by_interval(), Adjust::Frequency, settings);
//! let mut made = 0;
//! for event in 0..100u64 {
//!     let now = event * 13_351_134; // 0.13 % slower than was thought
//!     while quarters.output_until(now).is_some() {
//!         made += 1;
//!     }
//!     quarters.input(now);
//! }
//! assert_eq!(quarters.state(), State::Locked);
//! assert!((393..=397).contains(&made));
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod filter;
mod law;
mod looped;
mod measure;
mod oscillator;
mod steering;
mod units;
mod watch;

pub use filter::{Gains, Unstable};
pub use law::{LowPass, Straight};
pub use looped::{Loop, Settings};
pub use measure::{Measure, by_frequency, by_interval};
pub use oscillator::{Adjust, Oscillator};
pub use steering::Steering;
pub use units::{Frequency, Interval, Part, Ratio};
pub use watch::{State, Watch};
