//! Two machines in a row, and the queue between them, become one machine (S-11, R7).
//!
//! A state of the product is a pair of states. Where the first machine emits a byte, the second one's steps for that byte
//! stand instead: for a constant they are known at once; for the input they follow from the row that the input is in, so
//! the product's rows are as fine as both need. Nothing is tested twice and nothing is queued.

use alloc::vec;
use alloc::vec::Vec;

use crate::graph::{Graph, Id, Node, leads};
use crate::language::{Step, Test, Value, Word};
use crate::numbers::{Key, Numbers};
use crate::reduce::each_next;

/// The second machine's step depends on a byte that is not known when the product is made. Not reached by the language
/// of today, in which emitted bytes are constants or the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsupported;

/// Where the pair stands, the numbers of nodes in either graph.
#[derive(Clone, Copy)]
enum Place {
    /// Both take.
    Both(Id, Id),
    /// The first is at a step; the input is like this byte. The second takes.
    First(Id, Id, u8),
    /// The second is at a step for this value, then the first goes on.
    Second(Id, Value, Id, u8),
}

impl Place {
    fn key(self) -> Key {
        match self {
            Place::Both(first, second) => [0, first, second, 0, 0],
            Place::First(first, second, like) => [1, first, second, like.into(), 0],
            Place::Second(second, value, first, like) => [2, second, value.key(), first, like.into()],
        }
    }
}

struct Maker<'a> {
    first: &'a Graph,
    second: &'a Graph,
    numbers: Numbers,
    places: Vec<Place>,
    /// What the second machine's words are in the product.
    words: Vec<Word>,
    /// Ranges of input bytes, by their first, and a byte that the second machine cannot tell from them, whatever the first
    /// makes of them.
    like: Vec<(u8, u8)>,
    /// By nodes of the first: whether it still matters what the input is like.
    matters: Vec<bool>,
}

/// Two machines as one.
pub struct Product {
    pub graph: Graph,
    /// For the pairs of states that it has: the states of the first, the second, and the product.
    states: Vec<[Id; 3]>,
}

/// The machine that does what `first` does, with `second` behind it.
pub fn product(first: &Graph, second: &Graph) -> Result<Graph, Unsupported> {
    Ok(Product::of(first, second)?.graph)
}

impl Product {
    /// As [`product`], with the states told.
    pub fn of(first: &Graph, second: &Graph) -> Result<Product, Unsupported> {
        Product::sharing(first, second, &[])
    }

    /// Of each pair in `shared` the first machine's word and the second's are one: what the second counts, the first can see.
    pub fn sharing(first: &Graph, second: &Graph, shared: &[(Word, Word)]) -> Result<Product, Unsupported> {
        let mut count = first.words as Word;
        let words = (0..second.words as Word).map(|word| match shared.iter().find(|pair| pair.1 == word) {
            Some(pair) => pair.0,
            None => {
                count += 1;
                count - 1
            }
        });
        let mut maker = Maker {
            first,
            second,
            numbers: Numbers::new(),
            places: Vec::new(),
            words: words.collect(),
            like: classes(first, second),
            matters: matters(first),
        };
        maker.number(Place::Both(0, 0));
        let mut nodes = Vec::new();
        while let Some(place) = maker.places.get(nodes.len()).copied() {
            nodes.push(maker.node(place)?);
        }
        // Where neither machine has anything left to do, a node was made that does nothing.
        let skipped = |mut id: Id| {
            while let Node::Do(Step::Or(NOTHING, 0), next) = nodes[id as usize] {
                id = next;
            }
            id
        };
        let nodes = nodes.iter().map(|node| node.redirected(skipped)).collect();
        let joined = Graph {
            nodes,
            words: count.into(),
            arrays: [&first.arrays[..], &second.arrays].concat(),
            sets: [&first.sets[..], &second.sets].concat(),
        };
        let (graph, numbers) = joined.reduced();
        let pair = |(place, number): (&Place, &Id)| match *place {
            Place::Both(first, second) => Some([first, second, *number]),
            _ => None,
        };
        Ok(Product { graph, states: maker.places.iter().zip(&numbers).filter_map(pair).collect() })
    }

    /// States of the second machine, and the product's states with it, whatever the first is in.
    pub fn pairs(&self) -> impl Iterator<Item = (Id, Id)> {
        self.states.iter().map(|[_, second, both]| (*second, *both))
    }
}

/// Groups the inputs by what every state of the second machine does with each byte the first can make of them.
fn classes(first: &Graph, second: &Graph) -> Vec<(u8, u8)> {
    let mut values: Vec<Value> = Vec::new();
    for value in first.nodes.iter().filter_map(emitted) {
        if !matches!(value, Value::Const(_)) && !values.contains(&value) {
            values.push(value);
        }
    }
    let tables: Vec<_> = second.nodes.iter().filter_map(ranges).collect();
    // A changed byte's ranges do not begin where others do.
    let mut starts = [values.iter().any(|value| *value != Value::Input); 256];
    starts[0] = true;
    tables.iter().flat_map(|ranges| ranges.iter()).for_each(|range| starts[usize::from(range.0)] = true);
    let bytes: Vec<u8> = (0..=255).filter(|byte| starts[usize::from(*byte)]).collect();
    let mut class = vec![0; bytes.len()];
    for value in &values {
        for table in &tables {
            let mut known = Numbers::new();
            for (byte, class) in bytes.iter().zip(&mut class) {
                *class = known.of([*class, leads(table, value.of(*byte)), 0, 0, 0]);
            }
        }
    }
    let first_like = |own: &u32| class.iter().position(|other| other == own).unwrap_or(0);
    bytes.iter().zip(&class).map(|(byte, class)| (*byte, bytes[first_like(class)])).collect()
}

/// From which nodes a step leads, without taking another byte, that emits what depends on the input.
fn matters(graph: &Graph) -> Vec<bool> {
    let emits = |node: &Node| emitted(node).is_some_and(|value| !matches!(value, Value::Const(_)));
    let mut matters: Vec<bool> = graph.nodes.iter().map(emits).collect();
    let mut is_known = false;
    while !is_known {
        is_known = true;
        for (id, node) in graph.nodes.iter().enumerate() {
            let mut leads_there = false;
            if !matches!(node, Node::Take(_)) {
                each_next(node, |next| leads_there |= matters[next as usize]);
            }
            is_known &= matters[id] || !leads_there;
            matters[id] |= leads_there;
        }
    }
    matters
}

fn ranges(node: &Node) -> Option<&[(u8, Id)]> {
    match node {
        Node::Take(ranges) => Some(ranges),
        _ => None,
    }
}

impl Maker<'_> {
    fn number(&mut self, place: Place) -> Id {
        // What is the same for all inputs has one place.
        let place = match place {
            Place::First(first, second, _) if !self.matters[first as usize] => Place::First(first, second, 0),
            Place::Second(second, value, next, _) if !self.matters[next as usize] => {
                Place::Second(second, value, next, 0)
            }
            place => place,
        };
        let number = self.numbers.of(place.key());
        if number as usize == self.places.len() {
            self.places.push(place);
        }
        number
    }

    fn node(&mut self, place: Place) -> Result<Node, Unsupported> {
        Ok(match place {
            Place::Both(first, second) => {
                let ranges = ranges(&self.first.nodes[first as usize]).ok_or(Unsupported)?;
                let mut starts = [false; 256];
                let all = ranges.iter().map(|range| range.0).chain(self.like.iter().map(|range| range.0));
                all.for_each(|byte| starts[usize::from(byte)] = true);
                let ids = (0..=255u8).filter(|byte| starts[usize::from(*byte)]).map(|byte| {
                    let like = self.like[self.like.partition_point(|range| range.0 <= byte) - 1].1;
                    (byte, self.first(leads(ranges, byte), second, like))
                });
                Node::take(ids)
            }
            Place::First(first, second, like) => match self.first.nodes[first as usize].clone() {
                Node::Take(_) => return Err(Unsupported),
                Node::Emit(value, next) => return self.emitted(value, next, second, like),
                Node::Do(step, next) => Node::Do(step, self.first(next, second, like)),
                Node::Outside(number, next) => Node::Outside(number, self.first(next, second, like)),
                Node::Test(test, yes, no) => {
                    Node::Test(test, self.first(yes, second, like), self.first(no, second, like))
                }
            },
            Place::Second(second, value, next, like) => match self.second.nodes[second as usize].clone() {
                Node::Take(_) => return Err(Unsupported),
                Node::Emit(inner, after) => Node::Emit(composed(inner, value), self.second(after, value, next, like)),
                Node::Do(step, after) => Node::Do(self.moved(step, value), self.second(after, value, next, like)),
                Node::Outside(number, after) => Node::Outside(number, self.second(after, value, next, like)),
                Node::Test(test, yes, no) => Node::Test(
                    self.asked(test),
                    self.second(yes, value, next, like),
                    self.second(no, value, next, like),
                ),
            },
        })
    }

    /// The first machine's emitted byte enters the second. If that has nothing to do, the first goes on.
    fn emitted(&mut self, value: Value, next: Id, second: Id, like: u8) -> Result<Node, Unsupported> {
        let ranges = ranges(&self.second.nodes[second as usize]).ok_or(Unsupported)?;
        let entered = leads(ranges, value.of(like));
        let place = match self.second.nodes[entered as usize] {
            Node::Take(_) => self.place_of_first(next, entered, like),
            _ => Place::Second(entered, value, next, like),
        };
        match place {
            Place::Both(..) => Ok(Node::Do(Step::Or(NOTHING, 0), self.number(place))),
            place => self.node(place),
        }
    }

    fn place_of_first(&self, first: Id, second: Id, like: u8) -> Place {
        match self.first.nodes[first as usize] {
            Node::Take(_) => Place::Both(first, second),
            _ => Place::First(first, second, like),
        }
    }

    fn first(&mut self, first: Id, second: Id, like: u8) -> Id {
        self.number(self.place_of_first(first, second, like))
    }

    fn second(&mut self, second: Id, value: Value, next: Id, like: u8) -> Id {
        let place = match self.second.nodes[second as usize] {
            Node::Take(_) => self.place_of_first(next, second, like),
            _ => Place::Second(second, value, next, like),
        };
        self.number(place)
    }

    fn word(&self, word: Word) -> Word {
        self.words[usize::from(word)]
    }

    /// A step of the second machine, on its own words behind the first one's.
    fn moved(&self, step: Step, value: Value) -> Step {
        let word = |word| self.word(word);
        let array = |array: u16| array + self.first.arrays.len() as u16;
        match step {
            Step::Set(a, number) => Step::Set(word(a), number),
            Step::Add(a, number) => Step::Add(word(a), number),
            Step::Or(a, number) => Step::Or(word(a), number),
            Step::Multiply(a, by) => Step::Multiply(word(a), by),
            Step::Move(a, b) => Step::Move(word(a), word(b)),
            Step::AddWord(a, b) => Step::AddWord(word(a), word(b)),
            Step::SubtractWord(a, b) => Step::SubtractWord(word(a), word(b)),
            Step::Digit(a, inner, most) => Step::Digit(word(a), composed(inner, value), most),
            Step::Store(to, index, inner) => Step::Store(array(to), word(index), composed(inner, value)),
            Step::Load(a, from, index) => Step::Load(word(a), array(from), word(index)),
            Step::StoreCell(to, index, inner, above) => {
                Step::StoreCell(array(to), word(index), composed(inner, value), word(above))
            }
            Step::Blank(to, index, cell) => Step::Blank(array(to), word(index), word(cell)),
            Step::Mark(to, index) => Step::Mark(array(to), word(index)),
            step => step,
        }
    }

    fn asked(&self, test: Test) -> Test {
        let word = |word| self.word(word);
        match test {
            Test::Is(a, number) => Test::Is(word(a), number),
            Test::Below(a, number) => Test::Below(word(a), number),
            Test::Same(a, b) => Test::Same(word(a), word(b)),
            Test::Differ(a, b) => Test::Differ(word(a), word(b)),
            Test::BelowWord(a, b) => Test::BelowWord(word(a), word(b)),
            Test::In(a, set) => Test::In(word(a), set + self.first.sets.len() as u16),
        }
    }
}

/// The word of a step without effect.
const NOTHING: u16 = u16::MAX;

fn emitted(node: &Node) -> Option<Value> {
    match node {
        Node::Emit(value, _) => Some(*value),
        _ => None,
    }
}

/// What `inner` of the second machine is, when its input is `outer` of the first.
fn composed(inner: Value, outer: Value) -> Value {
    match (inner, outer) {
        (Value::Const(byte), _) => Value::Const(byte),
        (Value::Input, outer) => outer,
        (Value::Flipped(mask), Value::Const(byte)) => Value::Const(byte ^ mask),
        (Value::Flipped(mask), Value::Input) => Value::Flipped(mask),
        (Value::Flipped(a), Value::Flipped(b)) => Value::Flipped(a ^ b),
    }
}
