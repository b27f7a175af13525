//! The input files of the cases: made here, the same on every machine, never committed.

use means::Random;

/// Every input file by name with its bytes.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("numbers.txt", numbers(2000)),
        ("words.txt", words(4000)),
        ("table.txt", table(300)),
        ("bytes.bin", bytes(100_000, 1)),
        ("small.bin", bytes(300, 2)),
        ("poem.txt", POEM.into()),
        ("poem2.txt", POEM.replace("ring", "queue").replace("The last", "A final").into_bytes()),
        ("empty.txt", Vec::new()),
        ("nonewline.txt", b"one\ntwo\nthree without an end".to_vec()),
    ]
}

const POEM: &str = "The code that writes the code it needs\nwill never ask the same thing twice.\n\n\
One thread goes round upon its ring\nand hands the next its slice of time.\n\
\tA tab begins this line, and  two  spaces.\nThe pipe is full, the reader sleeps,\nthe writer wakes it with a jump.\n\
UPPER lower MiXeD 12345 a_b-c.d\nThe last line ends the ring.\n";

/// `count` bytes of every value, from a seed that is not zero.
pub fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut sequence = Random::new(seed);
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        bytes.extend_from_slice(&sequence.bits().to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

fn numbers(count: usize) -> Vec<u8> {
    let mut sequence = Random::new(3);
    (0..count).map(|_| format!("{}\n", sequence.below(100_000))).collect::<String>().into_bytes()
}

fn words(count: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "quaject", "pump", "gauge", "switch", "monitor", "thread", "ring", "queue", "code", "kernel", "pipe", "signal",
        "frame", "page", "tty", "stream",
    ];
    let mut sequence = Random::new(4);
    let mut text = String::new();
    for index in 0..count {
        text.push_str(WORDS[sequence.below(16) as usize]);
        text.push(if index % 8 == 7 { '\n' } else { ' ' });
    }
    text.into_bytes()
}

fn table(rows: usize) -> Vec<u8> {
    let mut sequence = Random::new(5);
    let names = ["ada", "brian", "calton", "dennis", "edsger", "frances", "grace", "henry"];
    (0..rows)
        .map(|row| {
            let name = names[sequence.below(8) as usize];
            format!("{row}:{name}:{}:{}\n", sequence.below(1000), sequence.below(50))
        })
        .collect::<String>()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_every_time_and_distinct() {
        assert_eq!(all(), all());
        assert_ne!(bytes(64, 1), bytes(64, 2));
        assert_eq!(bytes(13, 1).len(), 13);
    }
}
