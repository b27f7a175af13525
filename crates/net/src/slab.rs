//! Things with numbers that are used again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use machine::{NoMemory, TryGrow, try_box};

pub struct Slab<T> {
    places: Vec<Option<Box<T>>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub const fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn add(&mut self, value: T) -> Result<u32, NoMemory> {
        let value = try_box(value)?;
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Some(value);
            return Ok(number);
        }
        let count = self.places.len() + 1;
        let missing = count - self.free.len();
        // So that `remove` finds room.
        self.free.room_for(missing)?;
        self.places.try_push(Some(value))?;
        Ok(count as u32 - 1)
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        self.places.get(number as usize)?.as_deref()
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_deref_mut()
    }

    pub fn remove(&mut self, number: u32) -> Option<Box<T>> {
        let value = self.places.get_mut(number as usize)?.take()?;
        self.free.put(number);
        Some(value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.places.iter().enumerate().filter_map(|(number, place)| Some((number as u32, place.as_deref()?)))
    }
}
