//! Programs as clang makes them (ELF, the sources in `bpf/`): the instructions of one program, with
//! the maps that its names stand for.
//!
//! A program declares its maps and defines nothing, so an object holds code and places in it where
//! the address of a map is wanted. Leaves out functions beside the program, data of an object's
//! own, type information, and big-endian machines.
//!
//! # Source
//! ELF-64, sections and relocations (System V ABI, chapter 4); R_BPF_64_64 of the kernel's
//! Documentation/bpf/llvm_reloc.rst; the wide load of RFC 9669 §5.4.

use std::os::fd::{AsRawFd, RawFd};

use super::map::Map;

/// A program of an object and what its names stand for.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// The ELF file.
    pub object: &'a [u8],
    /// The program, which is the section `xdp/NAME`.
    pub program: &'a str,
    /// Every name that it declares. The maps are to be open until the program is loaded.
    pub names: &'a [(&'a str, Place<'a>)],
}

/// What a name stands for.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// The only element of an array, as memory.
    Value(&'a Map),
    /// The map itself, for functions of the kernel.
    Map(&'a dyn AsRawFd),
}

const HEADER: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const RELOCATION_BYTES: usize = 16;
const INSTRUCTION_BYTES: usize = 8;
const RELOCATIONS: u32 = 9;
/// The opcode of the load of 64 bits, and what the upper half of its registers says of them.
const LOAD_WIDE: u8 = 0x18;
const MAP_FD: u8 = 1 << 4;
const MAP_VALUE: u8 = 2 << 4;

/// One section: its bytes, and what it points to.
struct Section<'a> {
    name: &'a [u8],
    kind: u32,
    bytes: &'a [u8],
    link: usize,
    of: usize,
}

impl Code<'_> {
    /// The instructions, 8 bytes each, with descriptors in the place of names.
    /// # Errors
    /// What is wrong with the object, or the name that stands for nothing: mistakes of the program
    /// text.
    pub(super) fn instructions(&self) -> Result<Vec<u8>, String> {
        let malformed =
            || format!("the object of {} is cut off or for another machine", self.program);
        let sections = sections(self.object).ok_or_else(malformed)?;
        let wanted = format!("xdp/{}", self.program);
        let at = sections.iter().position(|it| it.name == wanted.as_bytes() && it.kind == 1);
        let at = at.ok_or_else(|| format!("the object has no program {}", self.program))?;
        let mut code = sections[at].bytes.to_vec();
        for table in sections.iter().filter(|it| it.kind == RELOCATIONS && it.of == at) {
            for entry in table.bytes.chunks_exact(RELOCATION_BYTES) {
                let offset = usize::try_from(u64_at(entry, 0).unwrap_or(u64::MAX));
                let symbol = u32_at(entry, 12).and_then(|it| usize::try_from(it).ok());
                let name = symbol.and_then(|it| name_of(&sections, table.link, it));
                let name = name.ok_or_else(malformed)?;
                let known = self.names.iter().find(|(known, _)| known.as_bytes() == name);
                let (_, place) = known.ok_or_else(|| {
                    format!("{} is no map of {}", String::from_utf8_lossy(name), self.program)
                })?;
                let load = offset.ok().and_then(|at| code.get_mut(at..at + 2 * INSTRUCTION_BYTES));
                put(load.ok_or_else(malformed)?, *place).ok_or_else(malformed)?;
            }
        }
        Ok(code)
    }
}

/// Puts a map into a wide load, whose constant is the offset in the map's value.
fn put(load: &mut [u8], place: Place<'_>) -> Option<()> {
    let offset: [u8; 4] = load.get(4..8)?.try_into().ok()?;
    let (source, fd, rest): (_, RawFd, _) = match place {
        Place::Value(map) => (MAP_VALUE, map.as_raw_fd(), offset),
        Place::Map(map) => (MAP_FD, map.as_raw_fd(), [0; 4]),
    };
    if load[0] != LOAD_WIDE {
        return None;
    }
    load[1] = load[1] & 0x0f | source;
    load[4..8].copy_from_slice(&fd.to_le_bytes());
    load[12..16].copy_from_slice(&rest);
    Some(())
}

fn sections(elf: &[u8]) -> Option<Vec<Section<'_>>> {
    if elf.get(..HEADER.len())? != HEADER || cfg!(target_endian = "big") {
        return None;
    }
    let table = usize::try_from(u64_at(elf, 0x28)?).ok()?;
    let [count, names] = [u16_at(elf, 0x3c)?, u16_at(elf, 0x3e)?].map(usize::from);
    let header = |index: usize| elf.get(table + index * SECTION_BYTES..)?.get(..SECTION_BYTES);
    let bytes = |index: usize| {
        let header = header(index)?;
        let [start, len] = [u64_at(header, 24)?, u64_at(header, 32)?];
        elf.get(usize::try_from(start).ok()?..)?.get(..usize::try_from(len).ok()?)
    };
    let names = bytes(names)?;
    let section = |index: usize| {
        let header = header(index)?;
        Some(Section {
            name: text_at(names, u32_at(header, 0)?)?,
            kind: u32_at(header, 4)?,
            bytes: bytes(index)?,
            link: usize::try_from(u32_at(header, 40)?).ok()?,
            of: usize::try_from(u32_at(header, 44)?).ok()?,
        })
    };
    (0..count).map(section).collect()
}

/// The name of a symbol in the table of symbols that is section `table`.
fn name_of<'a>(sections: &[Section<'a>], table: usize, symbol: usize) -> Option<&'a [u8]> {
    let table = sections.get(table)?;
    let entry = table.bytes.get(symbol * SYMBOL_BYTES..)?;
    text_at(sections.get(table.link)?.bytes, u32_at(entry, 0)?)
}

fn text_at(table: &[u8], at: u32) -> Option<&[u8]> {
    table.get(usize::try_from(at).ok()?..)?.split(|byte| *byte == 0).next()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &[u8] = include_bytes!("../../bpf/forward.o");

    /// Something with a descriptor.
    struct Nine;

    impl AsRawFd for Nine {
        fn as_raw_fd(&self) -> RawFd {
            9
        }
    }

    fn instructions(object: &[u8], program: &str, names: &[&str]) -> Result<Vec<u8>, String> {
        let names: Vec<_> = names.iter().map(|name| (*name, Place::Map(&Nine))).collect();
        Code { object, program, names: &names }.instructions()
    }

    #[test]
    fn a_program_has_descriptors_in_the_place_of_names() {
        // mov r0, 2; exit (RFC 9669).
        let pass = instructions(OBJECT, "pass", &[]).expect("a sound object");
        assert_eq!(pass, [0xb4, 0, 0, 0, 2, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0]);
        let wire = instructions(OBJECT, "wire", &["counts", "devices", "plan"]).expect("sound");
        let loads: Vec<_> = wire.chunks(8).filter(|it| it[0] == LOAD_WIDE).collect();
        assert_eq!(loads.len(), 3);
        assert!(loads.iter().all(|it| it[1] >> 4 == 1 && it[4..] == [9, 0, 0, 0]), "{loads:?}");
    }

    #[test]
    fn an_object_that_is_cut_off_or_a_name_without_map_is_refused() {
        for length in 0..OBJECT.len() {
            let cut = instructions(&OBJECT[..length], "pass", &[]);
            assert!(cut.is_err(), "{length} of {} bytes", OBJECT.len());
        }
        let unknown = instructions(OBJECT, "wire", &["counts", "devices"]);
        assert_eq!(unknown, Err("plan is no map of wire".to_owned()));
        let absent = instructions(OBJECT, "nothing", &[]);
        assert_eq!(absent, Err("the object has no program nothing".to_owned()));
    }
}
