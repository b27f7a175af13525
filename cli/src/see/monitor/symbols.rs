//! Names in programs: the symbols of the files that a process has mapped, read through the kernel, so that they are those of
//! the very files (S-120).

use bootimage::inspect::{Fields, monitor as op};

use super::desk::{Done, Wrong, ask};
use crate::see::client::Client;

/// Most bytes of a table that is looked at.
const TABLE_BYTES_MAX: u64 = 64 << 20;
const SYMBOL_BYTES: usize = 24;
const HEADER_BYTES: usize = 64;
const SYMTAB: u32 = 2;
const DYNSYM: u32 = 11;
/// `ET_EXEC`: addresses are as the file says.
const FIXED: u16 = 2;
const LOAD: u32 = 1;

struct Symbol {
    name: String,
    address: u64,
    bytes: u64,
}

/// A file that is mapped.
struct Module {
    name: String,
    /// Areas that show it.
    areas: Vec<(u64, u64)>,
    /// Read when somebody asks.
    symbols: Option<Vec<Symbol>>,
}

/// The files of one process.
pub struct Modules {
    process: u32,
    all: Vec<Module>,
}

impl Modules {
    pub fn of(client: &mut Client, process: u32) -> Done<Modules> {
        let bytes = ask(client, op::AREAS, &[&process.to_le_bytes()])?;
        let bytes = bytes.ok_or_else(|| Wrong::new(format!("there is no process {process}")))?;
        let areas =
            client.items(&bytes, |from| Some((from.u64()?, from.u64()?, from.u64()?, from.text()?.to_vec())))?;
        let mut all: Vec<Module> = Vec::new();
        for (start, end, offset, name) in areas {
            let name = String::from_utf8_lossy(&name).into_owned();
            match all.iter_mut().find(|module| module.name == name) {
                Some(module) => module.areas.push((start, end)),
                None if offset == 0 => all.push(Module { name, areas: vec![(start, end)], symbols: None }),
                None => {}
            }
        }
        Ok(Modules { process, all })
    }

    /// The address of `main`, `libc.write`: the first file that has the name, the program before its libraries.
    pub fn address(&mut self, client: &mut Client, name: &str) -> Done<Option<u64>> {
        let (family, plain) = name.rsplit_once('.').map_or((None, name), |(family, plain)| (Some(family), plain));
        for module in &mut self.all {
            if family.is_some_and(|family| !module.is_called(family)) {
                continue;
            }
            let symbols = module.symbols(client, self.process)?;
            if let Some(symbol) = symbols.iter().find(|symbol| symbol.name == plain) {
                return Ok(Some(symbol.address));
            }
        }
        Ok(None)
    }

    /// `main + 12`, if an address lies in a symbol or close behind one.
    pub fn name(&mut self, client: &mut Client, address: u64) -> Done<Option<String>> {
        let within = |module: &&mut Module| module.areas.iter().any(|(start, end)| (*start..*end).contains(&address));
        let Some(module) = self.all.iter_mut().find(within) else { return Ok(None) };
        let symbols = module.symbols(client, self.process)?;
        let before = symbols.iter().filter(|symbol| symbol.address <= address);
        // Of several names for one place, one with a size.
        let best = before.max_by_key(|symbol| (symbol.address, symbol.bytes));
        Ok(best.map(|symbol| match address - symbol.address {
            0 => symbol.name.clone(),
            offset => format!("{} + {offset}", symbol.name),
        }))
    }

    /// All names that begin so, of the program itself.
    pub fn names(&mut self, client: &mut Client, start: &str) -> Done<Vec<String>> {
        let Some(module) = self.all.first_mut() else { return Ok(Vec::new()) };
        let symbols = module.symbols(client, self.process)?;
        Ok(symbols.iter().map(|symbol| symbol.name.clone()).filter(|name| name.starts_with(start)).collect())
    }
}

impl Module {
    /// `libc` is `/usr/lib/libc.so.6` and `libc-2.31.so`.
    fn is_called(&self, family: &str) -> bool {
        let base = self.name.rsplit('/').next().unwrap_or_default();
        base.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    }

    fn symbols(&mut self, client: &mut Client, process: u32) -> Done<&[Symbol]> {
        if self.symbols.is_none() {
            let start = self.areas[0].0;
            let mut file = MappedFile { client, process, start };
            // What is no ELF file has none.
            let head = file.read(0, HEADER_BYTES as u64)?;
            let symbols = if head.starts_with(b"\x7fELF\x02\x01") { read_symbols(&mut file, &head)? } else { None };
            self.symbols = Some(symbols.unwrap_or_default());
        }
        Ok(self.symbols.as_deref().unwrap_or_default())
    }
}

/// A mapped file, read through the kernel.
struct MappedFile<'a> {
    client: &'a mut Client,
    process: u32,
    start: u64,
}

impl MappedFile<'_> {
    /// So many bytes; fewer where the file ends.
    fn read(&mut self, offset: u64, bytes: u64) -> Done<Vec<u8>> {
        let mut all: Vec<u8> = Vec::new();
        while (all.len() as u64) < bytes.min(TABLE_BYTES_MAX) {
            let Some(at) = offset.checked_add(all.len() as u64) else { break };
            let arguments = [self.start.to_le_bytes(), at.to_le_bytes()];
            let request: [&[u8]; 2] = [&self.process.to_le_bytes(), arguments.as_flattened()];
            match ask(self.client, op::FILE, &request)? {
                Some(piece) if !piece.is_empty() => all.extend(piece),
                _ => break,
            }
        }
        all.truncate(bytes as usize);
        Ok(all)
    }
}

/// Symbols with their addresses in the process; `None` for a file that contradicts itself.
fn read_symbols(file: &mut MappedFile<'_>, head: &[u8]) -> Done<Option<Vec<Symbol>>> {
    let (Some(kind), Some(programs), Some(sections)) = (half(head, 16), word(head, 32), word(head, 40)) else {
        return Ok(None);
    };
    let counts =
        [half(head, 54), half(head, 56), half(head, 58), half(head, 60)].map(|count| u64::from(count.unwrap_or(0)));
    let [program_bytes, program_count, section_bytes, section_count] = counts;
    let programs = file.read(programs, program_bytes * program_count)?;
    let loads = programs.chunks_exact((program_bytes as usize).max(HEADER_BYTES - 8));
    let first = loads.filter(|program| half_word(program, 0) == Some(LOAD)).find_map(|program| word(program, 16));
    let bias = if kind == FIXED { 0 } else { file.start.wrapping_sub(first.unwrap_or(0) & !0xFFF) };
    let sections = file.read(sections, section_bytes * section_count)?;
    let sections: Vec<&[u8]> = sections.chunks_exact((section_bytes as usize).max(HEADER_BYTES)).collect();
    let of_kind = |kind| sections.iter().find(|section| half_word(section, 4) == Some(kind));
    let Some(table) = of_kind(SYMTAB).or(of_kind(DYNSYM)) else { return Ok(None) };
    let texts = half_word(table, 40).and_then(|link| sections.get(link as usize));
    let Some([offset, bytes, text_offset, text_bytes]) =
        texts.and_then(|texts| Some([word(table, 24)?, word(table, 32)?, word(texts, 24)?, word(texts, 32)?]))
    else {
        return Ok(None);
    };
    let table = file.read(offset, bytes)?;
    let texts = file.read(text_offset, text_bytes)?;
    let symbols = table.chunks_exact(SYMBOL_BYTES).filter_map(|symbol| symbol_of(symbol, &texts, bias));
    Ok(Some(symbols.collect()))
}

/// A function or an object with a name and a place.
fn symbol_of(symbol: &[u8], texts: &[u8], bias: u64) -> Option<Symbol> {
    let (kind, section) = (symbol[4] & 15, half(symbol, 6)?);
    // Without a type, objects, functions, indirect functions; defined here.
    if !matches!(kind, 0..=2 | 10) || section == 0 || section >= 0xFF00 {
        return None;
    }
    let name = texts.get(half_word(symbol, 0)? as usize..)?.split(|byte| *byte == 0).next()?;
    let (address, bytes) = (word(symbol, 8)?.wrapping_add(bias), word(symbol, 16)?);
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    Some(Symbol { name: name.to_string(), address, bytes })
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Fields(bytes.get(at..)?).u16()
}

fn half_word(bytes: &[u8], at: usize) -> Option<u32> {
    Fields(bytes.get(at..)?).u32()
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Fields(bytes.get(at..)?).u64()
}
