/* The counter: what happens to each frame, and where its figures are (src/xdp/sink_program.rs).
 * Each processor counts in a row of its own, so that no count is lost; the order of numbers and the
 * last arrival are one for all, so that they are exact when one NAPI serves the interface. */
#include "frame.h"

enum { STREAMS = 16, FORMER_TRIALS = 16 };

struct slot {
    u64 frames, bytes, copies, reordered, wrong_length, loss_runs, longest_run, first, last;
    u64 not_remembered;
    struct spread latency, gap;
};

extern struct {
    u64 trial, own, shortest, longest, upper, unused[3];
    u64 slot_of[STREAMS], bits_at[STREAMS], remembered[STREAMS], former[FORMER_TRIALS];
    struct {
        u64 next, arrived;
    } order[STREAMS];
} control;
/* A row for each processor: seven words for foreign frames, then the slots. */
extern u8 counts[];
extern u8 bitmap[];
extern u8 arrivals[];
extern const volatile struct {
    u64 cpus, slots, row_bytes, bitmap_last, log_frames, several_buffers;
} plan;

enum foreign { ARP, NEIGHBOUR, LINK_CONTROL, OTHER_TRIAL, LOOP, OTHER, PAUSE, FOREIGN_WORDS };

/* The kind of a frame without signature. */
inline enum foreign plain(struct frame *frame)
{
    u8 *data = (u8 *)(u64)frame->data, *end = (u8 *)(u64)frame->data_end;
    if (data + 14 > end)
        return OTHER;
    u16 type = be16(*(u16 *)(data + 12));
    /* MAC control, whichever address it is to. */
    if (type == 0x8808)
        return PAUSE;
    /* 01:80:c2:00:00:0x */
    if (be32(*(u32 *)data) == 0x0180c200 && be16(*(u16 *)(data + 4)) <= 15)
        return LINK_CONTROL;
    if (type == 0x0806)
        return ARP;
    if (type != 0x86dd || data + 63 > end)
        return OTHER;
    /* ICMPv6 at once, or behind one hop-by-hop header of 8 bytes (listener reports). */
    u8 next = data[20] == 0 ? data[54] : data[20], kind = data[20] == 0 ? data[62] : data[54];
    return next == 58 && (kind == 143 || (kind >= 130 && kind <= 137)) ? NEIGHBOUR : OTHER;
}

/* A frame that carries a signature of no current trial: perhaps of another. */
inline enum foreign signed_otherwise(struct frame *frame, u64 trial)
{
#pragma unroll
    for (int i = 0; i < FORMER_TRIALS; i++)
        if (control.former[i] == trial)
            return OTHER_TRIAL;
    return trial >> 16 == control.upper ? OTHER_TRIAL : plain(frame);
}

/* Test frames of other trials and loops end here, the rest is for the host. */
inline int foreign(enum foreign kind)
{
    u64 cpu = get_smp_processor_id();
    if (cpu >= plan.cpus)
        return XDP_PASS;
    ((u64 *)(counts + cpu * plan.row_bytes))[kind]++;
    return kind == OTHER_TRIAL || kind == LOOP ? XDP_DROP : XDP_PASS;
}

/* Sets the number's bit: whether it was set. */
inline int is_copy(struct slot *slot, u64 at, u64 number)
{
    u64 byte = (control.bits_at[at] + (number >> 6 << 3)) & ~7ULL, bit = 1ULL << (number & 63);
    if (number < control.remembered[at] && byte <= plan.bitmap_last)
        return (__sync_fetch_and_or((u64 *)(bitmap + byte), bit) & bit) != 0;
    slot->not_remembered++;
    return 0;
}

/* RFC 4737 section 3.3: a frame is reordered when its number is below the next expected. */
inline void count_order(struct slot *slot, u64 at, u64 number)
{
    u64 next = control.order[at].next;
    if (number < next) {
        slot->reordered++;
        return;
    }
    if (number > next) {
        slot->loss_runs++;
        if (number - next > slot->longest_run)
            slot->longest_run = number - next;
    }
    control.order[at].next = number + 1;
}

program("sink") int sink(struct frame *frame)
{
    u64 halves[2], length;
    if (!read_signature(frame, plan.several_buffers, halves, &length))
        return foreign(plain(frame));
    u64 trial = halves[0] >> 32, stream = halves[0] >> 24 & 0xff;
    if (trial != control.trial)
        return foreign(signed_otherwise(frame, trial));
    if (stream >= STREAMS)
        return foreign(OTHER_TRIAL);
    if (control.own >> stream & 1)
        return foreign(LOOP);
    u64 at = control.slot_of[stream];
    if (at >= plan.slots)
        return foreign(OTHER_TRIAL);
    u64 number = (halves[0] & 0xffffff) << 32 | halves[1] >> 32, now = ktime_get_ns();
    u64 cpu = get_smp_processor_id();
    if (cpu >= plan.cpus)
        return XDP_DROP;
    u64 row = FOREIGN_WORDS * 8 + cpu * plan.row_bytes;
    struct slot *slot = (struct slot *)(counts + row + at * sizeof(struct slot));
    at &= STREAMS - 1;
    if (is_copy(slot, at, number)) {
        slot->copies++;
        return XDP_DROP;
    }
    slot->frames++;
    slot->bytes += length;
    if (length < control.shortest || length > control.longest)
        slot->wrong_length++;
    if (!slot->first)
        slot->first = now;
    slot->last = now;
    count_order(slot, at, number);
    u64 before = control.order[at].arrived;
    control.order[at].arrived = now;
    /* Another processor may have read its clock later and come here earlier. */
    if (before)
        count_time(&slot->gap, now < before ? 0 : now - before);
    count_time(&slot->latency, (u32)(now - (u32)halves[1]));
    if (number < plan.log_frames)
        *(u64 *)(arrivals + (at * plan.log_frames + number) * 8) = now;
    return XDP_DROP;
}
