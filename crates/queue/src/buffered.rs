//! Buffered queues (S-43): an element of eight parts, filled by eight inserts of which only the last is a queue insert.
//!
//! The paper's A/D server packs eight samples into an element, so that the cost of the queue is paid once in eight
//! interrupts. Each insert knows its part as a constant and ends by making the next one current: what is to be done is
//! an address, not an index that must be tested.

use crate::ends::{Full, Put};

/// Parts of an element.
pub const PARTS: usize = 8;

/// What fills elements and puts the full ones into a queue.
pub struct Filler<T, P> {
    /// The insert for the next part.
    insert: Insert<T, P>,
    element: [T; PARTS],
    queue: P,
}

type Insert<T, P> = fn(&mut Filler<T, P>, T) -> Result<(), Full<T>>;

impl<T: Copy + Default, P: Put<[T; PARTS]>> Filler<T, P> {
    /// Fills elements for `queue`.
    pub fn new(queue: P) -> Filler<T, P> {
        Filler { insert: part_0, element: [T::default(); PARTS], queue }
    }

    /// Inserts one part. Only each eighth can fail: then the queue is full, and the same part may be tried again.
    #[inline]
    pub fn put(&mut self, part: T) -> Result<(), Full<T>> {
        (self.insert)(self, part)
    }

    /// Forgets the parts of an unfinished element.
    pub fn reset(&mut self) {
        self.insert = part_0;
    }
}

/// The insert for one part, and which one is next.
macro_rules! part {
    ($name:ident, $part:literal, $next:ident) => {
        fn $name<T: Copy + Default, P: Put<[T; PARTS]>>(filler: &mut Filler<T, P>, part: T) -> Result<(), Full<T>> {
            filler.element[$part] = part;
            filler.insert = $next;
            Ok(())
        }
    };
}

part!(part_0, 0, part_1);
part!(part_1, 1, part_2);
part!(part_2, 2, part_3);
part!(part_3, 3, part_4);
part!(part_4, 4, part_5);
part!(part_5, 5, part_6);
part!(part_6, 6, part_7);

/// The last part: the element goes into the queue.
fn part_7<T: Copy + Default, P: Put<[T; PARTS]>>(filler: &mut Filler<T, P>, part: T) -> Result<(), Full<T>> {
    filler.element[7] = part;
    filler.queue.put(filler.element).map_err(|Full(_)| Full(part))?;
    filler.insert = part_0;
    Ok(())
}
