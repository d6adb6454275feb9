//! Maps (BPF_MAP_CREATE): arrays that this process reads and writes as memory, arrays of
//! interfaces.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Attributes, MAP_CREATE, MAP_UPDATE_ELEM, bpf_fd, bpf_syscall, object_name};
use crate::{Error, Result};

const TYPE_ARRAY: u32 = 2;
const TYPE_DEVMAP: u32 = 14;
const TYPE_XSKMAP: u32 = 17;
const FLAG_MMAPABLE: u32 = 1 << 10;
const WORD_BYTES: usize = 8;

#[repr(C)]
#[derive(Default)]
struct Create {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}
// SAFETY: integers alone, no padding and no pointers.
unsafe impl Attributes for Create {}

#[repr(C)]
#[derive(Default)]
struct Element {
    map_fd: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}
// SAFETY: integers alone, padding named; the pointers are kept valid by `Map::set`.
unsafe impl Attributes for Element {}

/// A BPF map, held by its descriptor.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
}

impl Map {
    fn create(name: &str, mut create: Create) -> Result<Self> {
        create.map_name = object_name(name);
        // SAFETY: nothing in it is a pointer, and the command makes a descriptor.
        let fd = unsafe { bpf_fd(MAP_CREATE, &mut create) };
        fd.map(|fd| Self { fd }).map_err(|source| Error::new("make BPF map", name, source))
    }

    /// Sets an element of 4 bytes.
    fn set_element(&self, key: u32, value: u32) -> io::Result<()> {
        let mut element = Element {
            map_fd: self.as_raw_fd().cast_unsigned(),
            key: (&raw const key) as u64,
            value: (&raw const value) as u64,
            ..Element::default()
        };
        // SAFETY: key and value are 4 bytes each, as the map was made, and live through the call.
        unsafe { bpf_syscall(MAP_UPDATE_ELEM, &mut element) }.map(drop)
    }
}

impl AsRawFd for Map {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// An array of 64-bit words, all of them one element of a map, that programs use through
/// [`super::Asm::map_value`] and this process as memory: no call is needed to read a counter.
#[derive(Debug)]
pub struct MappedArray {
    map: Map,
    start: NonNull<AtomicU64>,
    words: usize,
    mapped_bytes: usize,
}

// SAFETY: the mapping is owned alone and reached only through atomics.
unsafe impl Send for MappedArray {}
// SAFETY: as above; the kernel's writes from other processors are what the atomics are for.
unsafe impl Sync for MappedArray {}

impl MappedArray {
    /// Makes and maps an array of `words` words, all of them 0.
    /// # Errors
    /// Without CAP_BPF, or when the kernel gives no memory.
    pub fn new(name: &str, words: usize) -> Result<Self> {
        let failed = |source: io::Error| Error::new("map BPF array", name, source);
        let bytes = words.max(1) * WORD_BYTES;
        let value_size =
            u32::try_from(bytes).map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
        let map = Map::create(
            name,
            Create {
                map_type: TYPE_ARRAY,
                key_size: 4,
                value_size,
                max_entries: 1,
                map_flags: FLAG_MMAPABLE,
                ..Create::default()
            },
        )?;
        let mapped_bytes = bytes.next_multiple_of(rustix::param::page_size());
        let access = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice, of a map that is as long.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                access,
                rustix::mm::MapFlags::SHARED,
                &map.fd,
                0,
            )
        };
        let start = start.map_err(|errno| failed(errno.into()))?;
        let start = NonNull::new(start.cast()).ok_or_else(|| failed(io::Error::other("null")))?;
        Ok(Self { map, start, words: words.max(1), mapped_bytes })
    }

    /// The BPF map behind the memory, for programs to refer to.
    pub const fn bpf_map(&self) -> &Map {
        &self.map
    }

    /// The words. Programs change them at any time.
    pub const fn atomic_words(&self) -> &[AtomicU64] {
        // SAFETY: `words` words at `start` are mapped and initialised until the drop; a page
        // boundary is aligned for them, and everybody changes them by single stores.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// Word `index`.
    pub fn get(&self, index: usize) -> u64 {
        self.atomic_words()[index].load(Ordering::Acquire)
    }

    /// Sets word `index`.
    pub fn set_word(&self, index: usize, value: u64) {
        self.atomic_words()[index].store(value, Ordering::Release);
    }

    /// Sets all words to 0.
    pub fn clear_words(&self) {
        for word in self.atomic_words() {
            word.store(0, Ordering::Relaxed);
        }
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

impl Drop for MappedArray {
    fn drop(&mut self) {
        // SAFETY: the mapping is its own, and no borrow of it outlives it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// A row of counters in a [`MappedArray`], by the number of the word.
#[derive(Clone, Copy, Debug)]
pub struct Counters<'a> {
    array: &'a MappedArray,
    first: usize,
}

impl<'a> Counters<'a> {
    /// The counters from word `first` on.
    pub const fn new(array: &'a MappedArray, first: usize) -> Self {
        Self { array, first }
    }

    /// Counter `index`.
    pub fn get(&self, index: usize) -> u64 {
        self.array.get(self.first + index)
    }
}

/// Interfaces to which programs send frames (BPF_MAP_TYPE_DEVMAP). They are looked up when they
/// are put in, in the namespace of that thread, and found from any namespace afterwards.
#[derive(Debug)]
pub struct DeviceMap {
    map: Map,
}

impl DeviceMap {
    /// A map with these interfaces at 0, 1, ...
    /// # Errors
    /// When an interface does not exist in the namespace of the calling thread, or without
    /// CAP_NET_ADMIN.
    pub fn new(ifindexes: &[u32]) -> Result<Self> {
        let entries = u32::try_from(ifindexes.len().max(1)).unwrap_or(u32::MAX);
        let create = Create {
            map_type: TYPE_DEVMAP,
            key_size: 4,
            value_size: 4,
            max_entries: entries,
            ..Create::default()
        };
        let map = Self { map: Map::create("devices", create)? };
        for (key, ifindex) in (0_u32..).zip(ifindexes) {
            let set = map.map.set_element(key, *ifindex);
            set.map_err(|source| Error::new("send XDP frames to interface", ifindex, source))?;
        }
        Ok(map)
    }
}

impl AsRawFd for DeviceMap {
    fn as_raw_fd(&self) -> RawFd {
        self.map.as_raw_fd()
    }
}

/// AF_XDP sockets to which programs send frames, by the receive queue (BPF_MAP_TYPE_XSKMAP).
#[derive(Debug)]
pub struct SocketMap {
    map: Map,
}

impl SocketMap {
    /// A map for `queues` queues, without sockets.
    /// # Errors
    /// Without CAP_BPF.
    pub fn new(queues: u32) -> Result<Self> {
        let create = Create {
            map_type: TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: queues,
            ..Create::default()
        };
        Ok(Self { map: Map::create("sockets", create)? })
    }

    /// Redirects the frames of a receive queue to this socket from now on.
    /// # Errors
    /// When `socket` is not a bound AF_XDP socket.
    pub fn set_socket(&self, queue: u32, socket: &impl AsRawFd) -> Result<()> {
        let set = self.map.set_element(queue, socket.as_raw_fd().cast_unsigned());
        set.map_err(|source| Error::new("send XDP frames to the socket of queue", queue, source))
    }
}

impl AsRawFd for SocketMap {
    fn as_raw_fd(&self) -> RawFd {
        self.map.as_raw_fd()
    }
}
