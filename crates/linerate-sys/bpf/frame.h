/* What the programs share: the kernel's functions by number (enum bpf_func_id), and the end of a frame.
 * Names that are declared and not defined are maps; the loader puts them in (src/bpf/object.rs). */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* struct xdp_md of linux/bpf.h */
struct frame {
    u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

enum { XDP_DROP = 1, XDP_PASS = 2, XDP_TX = 3 };

static u64 (*const ktime_get_ns)(void) = (void *)5;
static u32 (*const get_smp_processor_id)(void) = (void *)8;
static long (*const redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const xdp_adjust_tail)(struct frame *, int by) = (void *)65;
static u64 (*const xdp_get_buff_len)(struct frame *) = (void *)188;
static long (*const xdp_load_bytes)(struct frame *, u32 at, void *to, u32 bytes) = (void *)189;
static long (*const xdp_store_bytes)(struct frame *, u32 at, void *from, u32 bytes) = (void *)190;

#define program(name) __attribute__((section("xdp/" name)))
#define inline static __attribute__((always_inline)) inline
#define be16(value) __builtin_bswap16(value)
#define be32(value) __builtin_bswap32(value)
#define be64(value) __builtin_bswap64(value)

/* The last bytes of a frame in one buffer, none elsewhere: `bytes` is 4 or 16. */
inline void *last_bytes(struct frame *frame, u64 length, u64 bytes)
{
    u64 data = frame->data, end = frame->data_end, at = end - data - bytes;
    /* The verifier follows an offset from the start, with a bound; a short frame has wrapped round. */
    asm volatile("" : "+r"(at));
    if (end - data != length || at > 0x3fff)
        return 0;
    u8 *last = (u8 *)(data + at);
    return last + bytes <= (u8 *)end ? last : 0;
}

/* The signature's halves in host order, and the frame's length; 0 for a frame that is shorter. */
inline int read_signature(struct frame *frame, u64 several_buffers, u64 halves[2], u64 *length)
{
    *length = several_buffers ? xdp_get_buff_len(frame) : (u64)frame->data_end - frame->data;
    u64 *last = last_bytes(frame, *length, 16);
    if (last) {
        halves[0] = be64(last[0]);
        halves[1] = be64(last[1]);
        return 1;
    }
    if (!several_buffers || *length < 16 || xdp_load_bytes(frame, *length - 16, halves, 16))
        return 0;
    halves[0] = be64(halves[0]);
    halves[1] = be64(halves[1]);
    return 1;
}

/* A histogram of times (src/xdp/spread.rs). */
enum { SUB_BITS = 6, VALUE_BITS = 36, BINS = (VALUE_BITS - SUB_BITS + 1) << SUB_BITS };
struct spread {
    u64 sum, min, max, scratch, bins[BINS];
};

inline void count_time(struct spread *spread, u64 ns)
{
    spread->sum += ns;
    if (ns < spread->min)
        spread->min = ns;
    if (ns > spread->max)
        spread->max = ns;
    if (ns > (1ULL << VALUE_BITS) - 1)
        ns = (1ULL << VALUE_BITS) - 1;
    u64 bin = ns;
    if (ns >= 1 << SUB_BITS) {
        u64 rest = ns;
        u32 highest = 0;
#pragma unroll
        for (u32 bits = 32; bits > 0; bits /= 2)
            if (rest >> bits) {
                rest >>= bits;
                highest += bits;
            }
        /* The position of the highest bit, and the six bits below it. */
        bin = (u64)(highest - SUB_BITS + 1) << SUB_BITS;
        bin += ns >> (highest - SUB_BITS) & ((1 << SUB_BITS) - 1);
    }
    /* Through memory: the verifier then forgets which of the many ways through the search led here,
     * instead of following each to the end of the program. */
    *(volatile u64 *)&spread->scratch = bin;
    bin = *(volatile u64 *)&spread->scratch;
    if (bin < BINS)
        spread->bins[bin]++;
}
