//! Records as bytes: how a structure lies in a program's memory, without any cast.

/// A value with a fixed number of bytes, little-endian, as it lies in a program's memory.
pub trait Field: Sized {
    /// Bytes taken in memory.
    const BYTES: usize;
    /// All bytes zero.
    const ZERO: Self;
    /// Writes the value to the first `BYTES` bytes of `out`, which must be at least that long.
    fn put(&self, out: &mut [u8]);
    /// Reads the value from the first `BYTES` bytes of `bytes`, which must be at least that long.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! integer_fields {
    ($($integer:ty)*) => { $(
        impl Field for $integer {
            const BYTES: usize = size_of::<$integer>();
            const ZERO: Self = 0;
            fn put(&self, out: &mut [u8]) {
                out[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                let mut word = [0; Self::BYTES];
                word.copy_from_slice(&bytes[..Self::BYTES]);
                Self::from_le_bytes(word)
            }
        }
    )* };
}
integer_fields! { u8 i8 u16 i16 u32 i32 u64 i64 u128 }

impl<T: Field, const N: usize> Field for [T; N] {
    const BYTES: usize = N * T::BYTES;
    const ZERO: Self = [T::ZERO; N];
    fn put(&self, out: &mut [u8]) {
        for (element, place) in self.iter().zip(out.chunks_exact_mut(T::BYTES)) {
            element.put(place);
        }
    }
    fn get(bytes: &[u8]) -> Self {
        let mut array = Self::ZERO;
        for (element, place) in array.iter_mut().zip(bytes.chunks_exact(T::BYTES)) {
            *element = T::get(place);
        }
        array
    }
}

/// Where one field of a record lies: name, offset and size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// The field's name, the same as in Linux's headers.
    pub name: &'static str,
    /// Bytes from the start of the record.
    pub offset: usize,
    /// Bytes of the field.
    pub bytes: usize,
}

/// Declares a record: `repr(C)`, padding written out, its size checked when compiled.
///
/// Fields of padding are named `_pad…`; they are public only so that `..Record::zeroed()` works.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        $record:ident, $bytes:literal bytes {
            $( $(#[$field_attribute:meta])* $field:ident: $kind:ty ),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct $record {
            $( $(#[$field_attribute])* pub $field: $kind ),*
        }

        impl $record {
            /// Size in a program's memory, in bytes.
            pub const BYTES: usize = $bytes;

            /// Where each field lies.
            pub const FIELDS: &[$crate::record::FieldPlace] = &[
                $( $crate::record::FieldPlace {
                    name: stringify!($field),
                    offset: core::mem::offset_of!($record, $field),
                    bytes: <$kind as $crate::record::Field>::BYTES,
                } ),*
            ];

            /// All fields zero.
            pub const fn zeroed() -> Self {
                Self { $( $field: <$kind as $crate::record::Field>::ZERO ),* }
            }

            /// The record as it lies in a program's memory.
            pub fn to_bytes(&self) -> [u8; $bytes] {
                let mut bytes = [0; $bytes];
                self.put_to(&mut bytes);
                bytes
            }

            #[inline]
            fn put_to(&self, bytes: &mut [u8; $bytes]) {
                $( $crate::record::Field::put(&self.$field, &mut bytes[core::mem::offset_of!($record, $field)..]); )*
            }

            /// The record read back from a program's memory; any bytes are a valid record.
            pub fn from_bytes(bytes: &[u8; $bytes]) -> Self {
                // Field by field in place: an expression of all fields would keep each on the stack first.
                let mut record = Self::zeroed();
                $( record.$field = $crate::record::Field::get(&bytes[core::mem::offset_of!($record, $field)..]); )*
                record
            }
        }

        impl Default for $record {
            fn default() -> Self {
                Self::zeroed()
            }
        }

        impl $crate::record::Field for $record {
            const ZERO: Self = Self::zeroed();
            const BYTES: usize = $bytes;
            fn put(&self, out: &mut [u8]) {
                if let Some(place) = out.first_chunk_mut::<$bytes>() {
                    self.put_to(place);
                }
            }
            fn get(bytes: &[u8]) -> Self {
                bytes.first_chunk::<$bytes>().map_or_else(Self::zeroed, Self::from_bytes)
            }
        }

        // No hidden padding: the fields fill the record exactly, in Rust as in bytes.
        const _: () = {
            assert!(size_of::<$record>() == $bytes);
            assert!(0 $( + <$kind as $crate::record::Field>::BYTES )* == $bytes);
        };
    };
}
pub(crate) use record;

/// Declares a family of numbers: one constant each, and the table of their names for decoding and tests.
macro_rules! numbers {
    (
        $(#[$attribute:meta])*
        $table:ident: $kind:ty { $( $name:ident = $value:expr ),* $(,)? }
    ) => {
        $(
            #[doc = concat!("Linux's `", stringify!($name), "`, see [`", stringify!($table), "`].")]
            pub const $name: $kind = $value;
        )*
        $(#[$attribute])*
        pub const $table: &$crate::Names = &$crate::Names {
            names: concat!( $( stringify!($name), " " ),* ),
            values: &[ $( $name as u64 ),* ],
        };
    };
}
pub(crate) use numbers;
