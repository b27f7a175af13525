//! Lists of fragments that several declarations share.

/// Declares a list: fragments in order, with the words in front of them, as a callentry has them. What is in their holes is
/// given where the list is included.
///
/// ```ignore
/// fragments! {
///     /// The page in the window.
///     pub list InWindow of Routine { slots: Abs32, absent: Target } {
///         paste FindPage { slots, slow_many: absent };
///         paste InPage { slow_many: absent };
///     }
/// }
/// // in a callentry:
/// include InWindow { slots, absent };
/// ```
#[macro_export]
macro_rules! fragments {
    (
        $(#[$meta:meta])*
        $visible:vis list $name:ident $(<$life:lifetime>)? of $routine:ty { $($(#[$hole_meta:meta])* $hole:ident : $type:ty),* $(,)? }
        { $($verb:ident $($template:ident { $($holes:tt)* })? $(($argument:expr))? ;)* }
    ) => {
        $(#[$meta])*
        $visible struct $name $(<$life>)? { $($(#[$hole_meta])* pub $hole: $type),* }

        impl $(<$life>)? $crate::List<$routine> for $name $(<$life>)? {
            fn append_to(self, routine: &mut $routine) {
                let $name { $($hole),* } = self;
                $(routine.$verb($($template { $($holes)* })? $($argument)?);)*
            }
        }

        impl $(<$life>)? $crate::parts::MadeOf for $name $(<$life>)? {
            fn each_template(see: &mut dyn FnMut($crate::parts::Template)) {
                $($(<$template as $crate::parts::MadeOf>::each_template(see);)?)*
            }
        }
    };
}
