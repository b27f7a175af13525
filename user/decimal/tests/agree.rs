//! Against others that are exact: the crate `ryu`, and Rust's own formatting.

use means::Random;
use synthdecimal::{DECIMALS_MAX, Room, fixed, shortest};

/// Numbers of all kinds: any bits, whole ones, decimal ones, neighbours of powers.
fn numbers(seed: u64, count: usize) -> impl Iterator<Item = f64> {
    let mut random = Random::new(seed);
    (0..count).map(move |turn| match turn % 6 {
        0 => f64::from_bits(random.bits()),
        1 => random.bits() as i64 as f64 / (1u64 << random.below(64)) as f64,
        2 => (random.below(2_000_000) as f64 - 1_000_000.0) / 1000.0,
        3 => 2f64.powi(random.below(2000) as i32 - 1040) * (1.0 + random.below(3) as f64 * f64::EPSILON),
        4 => 10f64.powi(random.below(600) as i32 - 300),
        _ => random.below(1 << 53) as f64 * 2f64.powi(-(random.below(60) as i32)),
    })
}

const EDGES: [f64; 24] = [
    0.0,
    -0.0,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    2.225_073_858_507_201e-308,
    1.7976931348623157e308,
    0.1,
    0.3,
    1.0,
    9007199254740992.0,
    9007199254740993.0,
    1e15,
    1e16,
    1e17,
    1e21,
    1e22,
    1e23,
    0.0001,
    0.00001,
    0.000001,
    4.35,
    123456789.125,
];

#[test]
fn the_shortest_is_ryus() {
    let (mut room, mut buffer) = (Room::new(), ryu::Buffer::new());
    for number in EDGES.into_iter().chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).chain(numbers(1, 400_000)) {
        let found = shortest(number, &mut room);
        assert_eq!(found, buffer.format(number), "{:#x}", number.to_bits());
        assert!(number.is_nan() || found.parse() == Ok(number), "{found}");
    }
}

#[test]
fn all_powers_of_two_and_their_neighbours() {
    let (mut room, mut buffer) = (Room::new(), ryu::Buffer::new());
    for bits in (0..2046u64).flat_map(|exponent| [exponent << 52, (exponent << 52) + 1, ((exponent + 1) << 52) - 1]) {
        let number = f64::from_bits(bits);
        assert_eq!(shortest(number, &mut room), buffer.format(number), "{bits:#x}");
    }
}

#[test]
fn decimals_are_those_of_rust() {
    let mut room = Room::new();
    for (turn, number) in EDGES.into_iter().chain(numbers(2, 60_000)).filter(|number| number.is_finite()).enumerate() {
        let decimals = [0, 1, 2, 3, 6, 9, 17, 18, 19, 36, 60][turn % 11];
        assert_eq!(fixed(number, decimals, &mut room), Some(format!("{number:.decimals$}").as_str()), "{number:e}");
    }
}

#[test]
fn halves_go_to_the_even_digit_and_carries_go_all_the_way() {
    let mut room = Room::new();
    for (number, decimals, expected) in [
        (0.5, 0, "0"),
        (1.5, 0, "2"),
        (2.5, 0, "2"),
        (-2.5, 0, "-2"),
        (0.125, 2, "0.12"),
        (0.375, 2, "0.38"),
        (9.5, 0, "10"),
        (99.999, 2, "100.00"),
        (-99.999, 2, "-100.00"),
        (0.999999, 3, "1.000"),
        (-0.0, 1, "-0.0"),
        (1e22, 1, "10000000000000000000000.0"),
    ] {
        assert_eq!(fixed(number, decimals, &mut room), Some(expected));
    }
}

#[test]
fn the_longest_has_room() {
    let mut room = Room::new();
    for number in [f64::MAX, -f64::MAX, 5e-324, -5e-324, f64::MIN_POSITIVE] {
        assert_eq!(fixed(number, DECIMALS_MAX, &mut room), Some(format!("{number:.DECIMALS_MAX$}").as_str()));
    }
    assert_eq!(fixed(1.0, DECIMALS_MAX + 1, &mut room), None);
    assert_eq!(fixed(f64::NAN, 1, &mut room), None);
}
