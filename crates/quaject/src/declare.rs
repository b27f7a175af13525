//! The declaration of a quaject (S-124).

/// Declares a quaject: its data, what it is made of, and everything that others can connect.
///
/// ```ignore
/// quaject! {
///     /// One queue of bytes. Invariant: `tail <= head <= tail + capacity`.
///     pub quaject Body ("pipe", made by "pipe2", at most 8 inactive)
///     facts(FACTS)
///     data { ring: PipeRing, readable: WaitQueue }
///     factors(pipe) { let head = pipe.ring.word(offset_of!(PipeWords, head)); }
///     callouts PipeCallouts {}
///     callbacks { empty: slow, full: slow }
///     callentries PipeCode {
///         /// Reads what is there.
///         read: FileCall(nr::READ) named "pipe.read" uses(user_limit) {
///             paste UserBuffer { user_limit, slow };
///             leave;
///         }
///     }
/// }
/// ```
/// - `facts` say what the holes of its templates stand for, for people; those of calls in general stand beside `call`. `pastes` names the templates that its makers paste by hand.
/// - `data` becomes a `repr(C)` struct: templates reach its fields by `offset_of!`.
/// - `factors` names what is folded into the templates; the name in parentheses is the quaject.
/// - `callouts` are what the quaject calls, each an `Option`; a callentry that `needs` one is left out while it is not
///   connected.
/// - `callbacks` are what it tells others; each is a target for jumps, and unconnected the way out that follows it.
/// - A callentry has a contract, the number of the call that it does, what it `uses` of its routine, and its fragments in
///   order: the words in front of them are methods of the contract's [`Routine`](crate::Routine). A list of fragments that
///   others have, too, is declared by [`fragments!`](crate::fragments) and named behind `include`.
/// - A callentry whose routine is made in another way than the contract's names it: `read: FileCall by Straight (nr::READ)`.
/// - A callentry that has other fragments as the circumstances are names its variants: `named "sound.null" | "sound.cd"`.
/// - All callentries are made together by [`create`](crate::create::create); one alone, when it is wanted, by the function of
///   its name at the struct of callentries, which returns what is [`Factored`](crate::Factored).
#[macro_export]
macro_rules! quaject {
    (
        $(#[$meta:meta])*
        $visible:vis quaject $name:ident ($class:literal, made by $maker:literal, at most $most:literal inactive)
        $(facts($facts:path))?
        $(pastes($($pasted:ident),* $(,)?))?
        data { $($(#[$field_meta:meta])* $field_visible:vis $field:ident : $field_type:ty),* $(,)? }
        factors($this:ident) $factors:tt
        callouts $callouts:ident $(<$life:lifetime>)? { $($(#[$callout_meta:meta])* $callout:ident : $callout_type:ty),* $(,)? }
        callbacks $callbacks:tt
        callentries $entries:ident {
            $(
                $(#[$entry_meta:meta])*
                $entry:ident : $contract:ident $(by $by:ident)? ($number:expr) named $($routine:literal)|+
                $(needs($($need:ident),*))? uses($($way:ident),* $(,)?)
                { $($verb:ident $($template:ident { $($holes:tt)* })? $(($argument:expr))? ;)* }
            )+
        }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        $visible struct $name { $($(#[$field_meta])* $field_visible $field: $field_type),* }

        /// What the quaject calls, where it is connected.
        #[derive(Default)]
        $visible struct $callouts $(<$life>)? { $($(#[$callout_meta])* pub $callout: Option<$callout_type>),* }

        /// The synthesized callentries; what is `None` is done in Rust.
        #[derive(Clone, Default)]
        $visible struct $entries { $($(#[$entry_meta])* pub $entry: Option<$crate::parts::Code<$contract>>),* }

        const _: () = {
            #[allow(non_camel_case_types, reason = "numbers have the callentries' names")]
            enum Number { $($entry),+ }

            /// The stage factor of each callentry alone.
            #[allow(dead_code, reason = "most are made together")]
            impl $entries {
                $(
                    #[inline]
                    $visible fn $entry(
                        $this: &$name,
                        makers: $crate::Makers,
                        callouts: &<$name as $crate::Quaject>::Callouts<'_>,
                    ) -> $crate::Factored<$contract> {
                        #[cold]
                        #[inline(never)]
                        #[allow(unused_variables, reason = "no callentry needs everything that is declared")]
                        fn draft(
                            $this: &$name,
                            makers: $crate::Makers,
                            callouts: &<$name as $crate::Quaject>::Callouts<'_>,
                        ) -> Option<$crate::parts::Draft> {
                            use $crate::Routine as _;
                            let _stage = $crate::parts::factoring();
                            $($(let $need = callouts.$need.as_ref()?;)*)?
                            let mut routine = <$crate::quaject!(@routine $contract $($by)?)>::begin(makers, $number);
                            $(let $way = routine.$way();)*
                            $crate::quaject!(@bind routine $callbacks);
                            $crate::quaject!(@splice $factors);
                            $(routine.$verb($($template { $($holes)* })? $($argument)?);)*
                            Some(routine.finish())
                        }
                        let class = <$name as $crate::Quaject>::class();
                        $crate::Factored::new(class, Number::$entry as usize, draft($this, makers, callouts))
                    }
                )+
            }
        };

        impl $crate::Whole for $entries {
            fn is_whole(&self) -> bool {
                true $(&& self.$entry.is_some())+
            }
        }

        impl $crate::Quaject for $name {
            type Callentries = $entries;
            $crate::quaject! { @associated $callouts $($life)? }
            type Drafts = [Option<$crate::parts::Draft>; $crate::quaject!(@count $($entry)*)];

            fn class() -> &'static $crate::Class {
                static CLASS: $crate::Class = $crate::Class::new($crate::parts::Declared {
                    name: $class,
                    made_by: $maker,
                    data: &[$($crate::Field {
                        name: stringify!($field),
                        offset: $crate::parts::offset_of!($name, $field) as u32,
                        bytes: $crate::parts::size_of::<$field_type>() as u32,
                    }),*],
                    callentries: &[$($crate::Callentry {
                        name: stringify!($entry),
                        routines: &[$($routine),+],
                        contract: <$contract as $crate::Contract>::NAME,
                        peepholes: <$contract as $crate::Contract>::PEEPHOLES,
                    }),*],
                    callouts: &[$(stringify!($callout)),*],
                    callbacks: $crate::quaject!(@callbacks $callbacks),
                    facts: &[$($facts)?],
                    templates: |see| {
                        $($($(<$template as $crate::parts::MadeOf>::each_template(see);)?)*)*
                        $($(<$pasted as $crate::parts::MadeOf>::each_template(see);)*)?
                    },
                    inactive_max: $most,
                });
                &CLASS
            }

            fn inactive() -> &'static $crate::Inactive<$name> {
                static INACTIVE: $crate::Inactive<$name> = $crate::Inactive::new($most);
                &INACTIVE
            }

            #[cold]
            fn factored(
                &self,
                makers: $crate::Makers,
                callouts: &<$name as $crate::Quaject>::Callouts<'_>,
            ) -> Self::Drafts {
                [$($entries::$entry(self, makers, callouts).draft()),*]
            }

            #[allow(unused_assignments, reason = "the number behind the last callentry is of none")]
            fn published(makers: $crate::Makers, drafts: Self::Drafts) -> $entries {
                let [$($entry),*] = drafts;
                let mut number = 0;
                $(
                    let $entry = $crate::Factored::new(Self::class(), number, $entry).publish(makers);
                    number += 1;
                )*
                $entries { $($entry),* }
            }
        }
    };
    (@routine $contract:ident) => { <$contract as $crate::Contract>::Routine };
    (@routine $contract:ident $by:ident) => { $by };
    (@associated $callouts:ident) => { type Callouts<'a> = $callouts; };
    (@associated $callouts:ident $life:lifetime) => { type Callouts<$life> = $callouts<$life>; };
    (@count) => { 0 };
    (@count $first:ident $($rest:ident)*) => { 1 + $crate::quaject!(@count $($rest)*) };
    (@callbacks { $($(#[$meta:meta])* $callback:ident : $default:ident),* $(,)? }) => {
        &[$($crate::Callback { name: stringify!($callback), default: stringify!($default) }),*]
    };
    (@bind $routine:ident { $($(#[$meta:meta])* $callback:ident : $default:ident),* $(,)? }) => {
        $(let $callback = $routine.callback(stringify!($callback), $routine.$default());)*
    };
    (@splice { $($statement:tt)* }) => { $($statement)* };
}
