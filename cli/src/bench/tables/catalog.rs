//! The papers' tables of single operations: what is measured for each row, and the paper's figure.

/// One table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// As the paper numbers it: the thesis, or SOSP'89 where there is no point.
    pub number: &'static str,
    pub title: &'static str,
    /// The unit of the paper's figures, and their machine.
    pub paper_unit: &'static str,
    pub rows: &'static [Row],
    /// The operation whose figure is subtracted from both before a gain is computed, as the paper does with the cost of a
    /// procedure call or an empty interrupt.
    pub floor: Option<&'static str>,
    /// Pairs of operations of which the first costs no more than the second: in guest instructions, which repeat, and, where
    /// rows are far enough apart to be told on a busy machine, in nanoseconds on the hosted machine.
    pub order: &'static [[&'static str; 2]],
}

/// One row: an operation of a program in `bench/tables`.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub title: &'static str,
    pub executable: &'static str,
    pub operation: &'static str,
    pub paper: Option<&'static str>,
    /// What it is held against: the row's figure divided by that of the row with this operation.
    pub against: Option<&'static str>,
    /// The paper's quotient.
    pub paper_gain: Option<f64>,
    /// C text of one use, to count the bytes that the compiler makes of it.
    pub one_use: Option<&'static str>,
    /// Iterations of the short and the long run, where a program can do the operation only so often.
    pub iterations: Option<[u32; 2]>,
    pub who: Who,
}

/// Who can do a row's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Everybody,
    /// Synthesis has no such thing.
    LinuxAlone,
    /// The kernel does it by itself, on the virtual machine.
    KernelAlone,
    /// Nobody here: the paper's row stands alone.
    Nobody,
}

const fn row(title: &'static str, executable: &'static str, operation: &'static str) -> Row {
    Row {
        title,
        executable,
        operation,
        paper: None,
        against: None,
        paper_gain: None,
        one_use: None,
        iterations: None,
        who: Who::Everybody,
    }
}

impl Row {
    const fn paper(self, figure: &'static str) -> Row {
        Row { paper: Some(figure), ..self }
    }

    /// The gain over `operation` is this row's figure divided by its.
    const fn against(self, operation: &'static str, paper_gain: Option<f64>) -> Row {
        Row { against: Some(operation), paper_gain, ..self }
    }

    const fn on_linux_alone(self) -> Row {
        Row { who: Who::LinuxAlone, ..self }
    }

    const fn in_kernel(self) -> Row {
        Row { who: Who::KernelAlone, ..self }
    }

    const fn by_nobody(self) -> Row {
        Row { who: Who::Nobody, ..self }
    }

    /// The program finds the cost of one by itself and says it so many times.
    const fn said(self) -> Row {
        Row { iterations: Some([1_000, 101_000]), ..self }
    }

    /// Pages are got and given back between the readings: so many are enough.
    const fn paged(self) -> Row {
        Row { iterations: Some([4_096, 24_576]), ..self }
    }

    /// One for each of the program's call sites.
    const fn once_a_site(self) -> Row {
        Row { iterations: Some([256, 4096]), ..self }
    }

    const fn used_as(self, text: &'static str) -> Row {
        Row { one_use: Some(text), ..self }
    }
}

pub const STDIO: &str = "stdio";
const CALLS: &str = "calls";
const COPY: &str = "copy";
const PATCH: &str = "patch";
const INTERRUPTS: &str = "interrupts";
const SWITCHES: &str = "switches";
const PAGES: &str = "pages";

/// All tables that can be measured: the thesis's, those of single decisions, SOSP'89's.
pub const TABLES: &[Table] = &[
    Table {
        number: "3.1",
        title: "a character into a buffer",
        paper_unit: "cycles of a 68030, warm cache",
        rows: &[
            row("code synthesis", STDIO, "put_synthesized").paper("20"),
            row("hand-crafted assembly", STDIO, "put_assembly").paper("28").against("put_synthesized", Some(1.4)),
            row("generic Rust", STDIO, "put_generic").against("put_synthesized", None),
            row("compiled C", STDIO, "put_compiled").against("put_synthesized", None),
            row("an empty function", STDIO, "empty"),
        ],
        floor: Some("empty"),
        order: &[],
    },
    Table {
        number: "3.2",
        title: "stdio libraries",
        paper_unit: "seconds for 10^7 on a Sony NEWS",
        rows: &[
            row("C library, putchar macro", STDIO, "libc_putchar_unlocked")
                .paper("21.4")
                .against("synthio_putchar", Some(1.6))
                .used_as("putchar_unlocked(c[0]);"),
            row("C library, putchar function", STDIO, "libc_putchar")
                .against("synthio_fputc", None)
                .used_as("putchar(c[0]);"),
            row("synthio, putchar macro", STDIO, "synthio_putchar").paper("13.0").used_as("sio_putchar(c[0]);"),
            row("synthio, putchar function", STDIO, "synthio_fputc")
                .paper("19.0")
                .used_as("sio_fputc(c[0], sio_stdout);"),
            row("C library, getchar macro", STDIO, "libc_getchar_unlocked")
                .against("synthio_getchar", None)
                .used_as("c[0] = getchar_unlocked();"),
            row("C library, getchar function", STDIO, "libc_getchar")
                .against("synthio_fgetc", None)
                .used_as("c[0] = getchar();"),
            row("synthio, getchar macro", STDIO, "synthio_getchar").used_as("c[0] = sio_getchar();"),
            row("synthio, getchar function", STDIO, "synthio_fgetc").used_as("c[0] = sio_fgetc(sio_stdin);"),
            row("generic Rust, putchar function", STDIO, "put_generic").against("synthio_fputc", None),
            row("generic Rust, fwrite 16 bytes", STDIO, "generic_fwrite_16").against("synthio_fwrite_16", None),
            row("C library, fwrite 16 bytes", STDIO, "libc_fwrite_16").against("synthio_fwrite_16", None),
            row("synthio, fwrite 16 bytes", STDIO, "synthio_fwrite_16"),
        ],
        floor: None,
        order: &[],
    },
    Table {
        number: "3.3",
        title: "a switch when a quantum ends, its interrupt included",
        paper_unit: "microseconds of a 68030 at 25 MHz, cold cache; Sony's UNIX 170, NeXT's Mach 510",
        rows: &[
            row("integer registers only", SWITCHES, "integer").paper("10.5").said(),
            row("vector (floating-point) registers", SWITCHES, "vector")
                .paper("52")
                .against("integer", Some(5.0))
                .said(),
            row("integer, change address space", SWITCHES, "space_integer")
                .paper("16")
                .against("integer", Some(1.5))
                .said(),
            row("vector, change address space", SWITCHES, "space_vector")
                .paper("56")
                .against("integer", Some(5.3))
                .said(),
            row("null procedure call, C", SWITCHES, "procedure").paper("1.4"),
        ],
        floor: None,
        order: &[["procedure", "integer"], ["integer", "vector"], ["space_integer", "space_vector"]],
    },
    Table {
        number: "3.5",
        title: "a null system call",
        paper_unit: "microseconds of a 68030 at 25 MHz, warm cache; UNIX cold",
        rows: &[
            row("C procedure call", CALLS, "procedure").paper("1.0").against("general", Some(0.29)),
            row("generic Rust (a number that nobody has)", CALLS, "unknown").against("general", None),
            row("general dispatch", CALLS, "general").paper("3.5"),
            row("general dispatch, in-lined", CALLS, "general_inlined").paper("2.9").against("general", Some(0.83)),
            row("cached", CALLS, "cached").paper("2.7").against("general", Some(0.77)),
            row("cached and in-lined", CALLS, "cached_inlined").paper("2.1").against("general", Some(0.60)),
            row("user-level", CALLS, "user_level").against("general", None),
            row("getpid of the C library", CALLS, "libc_getpid").paper("40").against("general", Some(9.5)),
            row("a trap gate of its own, int 0x80", CALLS, "gate").against("general", None).on_linux_alone(),
            row("first two calls of a site, general", CALLS, "first_general").once_a_site(),
            row("first two calls of a site, cached", CALLS, "first_cached")
                .against("first_general", None)
                .once_a_site(),
        ],
        floor: None,
        // The paper's order but for one pair: in-lining gains more than caching here (ADR 26).
        order: &[
            ["procedure", "cached_inlined"],
            ["cached_inlined", "general_inlined"],
            ["cached_inlined", "cached"],
            ["general_inlined", "general"],
            ["cached", "general"],
            ["user_level", "general"],
            ["general", "unknown"],
        ],
    },
    Table {
        number: "copy",
        title: "a copy between spaces, S-88",
        paper_unit: "no figure: unrolled",
        rows: &[
            row("7 bytes, rep movsq and movsb", COPY, "rep_7"),
            row("7 bytes, unrolled", COPY, "unrolled_7").against("rep_7", None),
            row("7 bytes, sorted", COPY, "sorted_7").against("rep_7", None),
            row("16 bytes, rep movsq", COPY, "rep_16"),
            row("16 bytes, unrolled", COPY, "unrolled_16").against("rep_16", None),
            row("16 bytes, sorted", COPY, "sorted_16").against("rep_16", None),
            row("100 bytes, rep movsq and movsb", COPY, "rep_100"),
            row("100 bytes, unrolled", COPY, "unrolled_100").against("rep_100", None),
            row("100 bytes, sorted", COPY, "sorted_100").against("rep_100", None),
            row("1024 bytes, rep movsq", COPY, "rep_1024"),
            row("1024 bytes, unrolled", COPY, "unrolled_1024").against("rep_1024", None),
            row("1024 bytes, sorted", COPY, "sorted_1024").against("rep_1024", None),
            row("4096 bytes, rep movsq", COPY, "rep_4096"),
            row("4096 bytes, unrolled", COPY, "unrolled_4096").against("rep_4096", None),
            row("4096 bytes, sorted", COPY, "sorted_4096").against("rep_4096", None),
            row("pipe, write and read of 1 byte", COPY, "pipe_1"),
            row("pipe, 7 bytes", COPY, "pipe_7").against("pipe_1", None),
            row("pipe, 16 bytes", COPY, "pipe_16").against("pipe_1", None),
            row("pipe, 100 bytes", COPY, "pipe_100").against("pipe_1", None),
            row("pipe, 1024 bytes", COPY, "pipe_1024").against("pipe_1", None),
            row("pipe, 4096 bytes", COPY, "pipe_4096").against("pipe_1", None),
        ],
        floor: None,
        // Longer runs: what sorting costs is one instruction.
        order: &[["sorted_100", "unrolled_100"], ["sorted_1024", "unrolled_1024"], ["sorted_4096", "unrolled_4096"]],
    },
    Table {
        number: "patch",
        title: "a condition that changes, S-22",
        paper_unit: "no figure: a flag where the condition changes often relative to its tests",
        rows: &[
            row("flag, never changed", PATCH, "flag"),
            row("patched code, never changed", PATCH, "patched").against("flag", None),
            row("flag, changed before each test", PATCH, "flag_1"),
            row("patched, changed before each test", PATCH, "patched_1").against("flag_1", None),
            row("patched and serialized, the same", PATCH, "serialized_1").against("flag_1", None),
            row("flag, changed before each 1000th test", PATCH, "flag_1000"),
            row("patched, the same", PATCH, "patched_1000").against("flag_1000", None),
            row("patched and serialized, the same", PATCH, "serialized_1000").against("flag_1000", None),
        ],
        floor: None,
        order: &[["flag_1", "patched_1"], ["patched_1", "serialized_1"]],
    },
    Table {
        number: "7.4",
        title: "faults and pages",
        paper_unit: "microseconds of a 68030 at 25 MHz, the fault included",
        rows: &[
            row("service a translation fault (a read: the shared page of zeros)", PAGES, "fault").paper("13.6").paged(),
            row("allocate a page, zeroed ahead", PAGES, "zeroed").paper("16.0").against("fault", Some(1.18)).paged(),
            row("allocate a page, to be zeroed", PAGES, "zeroing").paper("166").against("fault", Some(12.2)).paged(),
            row("allocate a page, none free: replace one", PAGES, "replace").paper("168 + T replace").by_nobody(),
            row("copy a page", PAGES, "copy").paper("274").against("fault", Some(20.1)).paged(),
            row("free a page", PAGES, "free").paper("1.6").against("fault", Some(0.12)).paged(),
        ],
        floor: None,
        order: &[["fault", "zeroing"], ["zeroed", "zeroing"], ["free", "zeroing"]],
    },
    Table {
        number: "5",
        title: "interrupts",
        // 1 µs is 3 to 5 instructions of a 68020 with no wait states.
        paper_unit: "microseconds of a 68020 at 16 MHz, and about how many instructions that is",
        rows: &[
            row("raw tty interrupt, one byte", INTERRUPTS, "raw_tty").paper("16 (48-80)").in_kernel(),
            row("raw A/D interrupt, with 3 of the loop", INTERRUPTS, "raw_ad").paper("3 (9-15)").in_kernel(),
            row("an interrupt without a device, with those", INTERRUPTS, "raise_nothing").in_kernel(),
            row("set alarm, in the kernel", INTERRUPTS, "set_in_kernel").paper("9 (27-45)").in_kernel(),
            row("set alarm, a program's call", INTERRUPTS, "set_alarm").paper("9 (27-45)"),
            row("alarm interrupt, till the program goes on", INTERRUPTS, "alarm_interrupt").paper("7 (21-35)"),
            row("chain to a procedure", INTERRUPTS, "chain_procedure").paper("4 (12-20)").in_kernel(),
            row("chain to a procedure, one retry", INTERRUPTS, "chain_retry").paper("7 (21-35)").in_kernel(),
            row("chain (signal) a thread, till it is ready", INTERRUPTS, "chain_thread").paper("9 (27-45)").in_kernel(),
        ],
        floor: None,
        order: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_held_against_rows_of_their_own_table() {
        for table in TABLES {
            for against in table.rows.iter().filter_map(|row| row.against).chain(table.floor) {
                assert!(table.rows.iter().any(|row| row.operation == against), "{}: {against}", table.number);
            }
            for operation in table.order.iter().flatten() {
                assert!(table.rows.iter().any(|row| row.operation == *operation), "{}: {operation}", table.number);
            }
        }
    }
}
