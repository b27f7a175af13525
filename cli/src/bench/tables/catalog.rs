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
    /// The kernel does it by itself, on the virtual machine: no other has it.
    pub in_kernel: bool,
}

const fn row(title: &'static str, executable: &'static str, operation: &'static str) -> Row {
    Row { title, executable, operation, paper: None, against: None, paper_gain: None, one_use: None, in_kernel: false }
}

impl Row {
    const fn paper(self, figure: &'static str) -> Row {
        Row { paper: Some(figure), ..self }
    }

    /// The gain over `operation` is this row's figure divided by its.
    const fn against(self, operation: &'static str, paper_gain: Option<f64>) -> Row {
        Row { against: Some(operation), paper_gain, ..self }
    }

    const fn in_kernel(self) -> Row {
        Row { in_kernel: true, ..self }
    }

    const fn used_as(self, text: &'static str) -> Row {
        Row { one_use: Some(text), ..self }
    }
}

const STDIO: &str = "stdio";
const CALLS: &str = "calls";
const INTERRUPTS: &str = "interrupts";

/// All tables that can be measured, SOSP'89's behind the thesis's.
pub const TABLES: &[Table] = &[
    Table {
        number: "3.1",
        title: "a character into a buffer",
        paper_unit: "cycles of a 68030, warm cache",
        rows: &[
            row("code synthesis", STDIO, "put_synthesized").paper("20"),
            row("hand-crafted assembly", STDIO, "put_assembly").paper("28").against("put_synthesized", Some(1.4)),
            row("compiled C", STDIO, "put_compiled").against("put_synthesized", None),
            row("an empty function", STDIO, "empty"),
        ],
        floor: Some("empty"),
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
            row("C library, fwrite 16 bytes", STDIO, "libc_fwrite_16").against("synthio_fwrite_16", None),
            row("synthio, fwrite 16 bytes", STDIO, "synthio_fwrite_16"),
        ],
        floor: None,
    },
    Table {
        number: "3.5",
        title: "a null system call",
        paper_unit: "microseconds of a 68030 at 25 MHz, warm cache; UNIX cold",
        rows: &[
            row("C procedure call", CALLS, "procedure").paper("1.0").against("general", Some(0.29)),
            row("a call number that nobody has", CALLS, "unknown"),
            row("general dispatch", CALLS, "general").paper("3.5"),
            row("general dispatch, in-lined", CALLS, "general_inlined").paper("2.9").against("general", Some(0.83)),
            row("cached", CALLS, "cached").paper("2.7").against("general", Some(0.77)),
            row("cached and in-lined", CALLS, "cached_inlined").paper("2.1").against("general", Some(0.60)),
            row("user-level", CALLS, "user_level").against("general", None),
            row("getpid of the C library", CALLS, "libc_getpid").paper("40").against("general", Some(9.5)),
        ],
        floor: None,
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
        }
    }
}
