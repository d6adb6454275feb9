/* The generator: makes each live frame anew and sends it when it is due (src/xdp/generator_program.rs).
 * Frames come back from the other end with whatever was written into them, so the first 128 bytes are
 * stored anew each time (all of them where templates differ in length), then the fields of the flow,
 * their checksums and the signature.
 * RFC 1624 section 3 (eqn. 3): HC' = ~(~HC + ~m + m') in one's complement, where a value of 32 bits may
 * stand for the sum of its halves, because 2^16 is 1 modulo 65535. */
#include "frame.h"

enum {
    TEMPLATES = 16,
    FIELDS = 4,
    HEADER_BYTES = 128,
    MIX_MAX = 1024,
    PAUSES_MAX = 256,
    SUSPECTS_MAX = 1 << 20,
    /* Looks at the clock while waiting inside the program, each about 25 ns. */
    SPINS = 96,
    /* A frame that took so much longer than usual was held up, by an interrupt for one. Below, times
     * differ from frame to frame. */
    HELD_UP_NS = 1000,
};

struct field {
    u64 at, width, base, divisor, count, in_header_sum, in_transport_sum;
};

struct template {
    u8 header[HEADER_BYTES];
    u64 length, signature_at, restored, shorter_by, payload_at, payload_bytes, flows, shuffled, fields;
    struct field field[FIELDS];
    u64 has_header_sum, header_sum_at, header_start;
    u64 has_balance, balance_at, balance_is_odd, balance_start;
};

struct halves {
    u64 high, low;
};

extern struct {
    u64 next, end, paced, due, due_rest, step, step_rest, divisor, moves_from, burst, burst_left;
    u64 late_above, late, worst, bytes, first, last, spin_below, mix_at, mix_length, signed_as, broken;
    u64 after, service, room, busy_until, could_lose, pause_from, pauses, away, since, since_number;
    u64 steady, steady_gaps, usual;
    u8 mix[MIX_MAX];
    struct {
        u64 number, late;
    } pause[PAUSES_MAX];
} state;
/* A bit a frame: whether it could be lost. */
extern u64 suspects[];
/* What templates of different length have between header and signature. */
extern u8 payload[];
extern struct {
} devices;
extern const volatile struct {
    u64 count;
    struct template template[TEMPLATES];
} templates;

/* Folds a sum below 2^40 to 16 bits. */
inline u64 fold(u64 sum)
{
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    return (sum >> 16) + (sum & 0xffff);
}

/* Until when a device that just carries the load may be busy: longer by what the frame before took
 * more than usual on its way to it. */
inline u64 held_up(void)
{
    u64 busy = state.busy_until;
    if (!state.last)
        return busy;
    u64 took = state.after - state.last, usual = state.usual >> 4;
    if (!state.usual) {
        state.usual = took << 4;
        return busy;
    }
    if (took > usual + HELD_UP_NS) {
        u64 until = state.last + took - usual + state.service;
        if (busy < until)
            busy = until;
        /* A time far off counts as twice the usual one. */
        if (took > usual * 2)
            took = usual * 2;
    }
    state.usual += took - usual;
    return busy;
}

/* Plays a device along that just carries the load: what it has no room for could be lost. */
inline void play(u64 busy, u64 number, u64 now)
{
    if (busy > now && busy - now > state.room) {
        state.could_lose++;
        state.busy_until = busy;
        if (number < SUSPECTS_MAX)
            suspects[number >> 6 & (SUSPECTS_MAX / 64 - 1)] |= 1ULL << (number & 63);
    } else
        state.busy_until = (busy > now ? busy : now) + state.service;
}

/* Ends a stretch at a frame that is late, and not by the pause of the frame before. */
inline void count_pause(u64 late, u64 number, u64 now)
{
    u64 last = state.last, index = state.pauses;
    if (late < state.pause_from || now - last < state.pause_from)
        return;
    if (last > state.since && last - state.since > state.steady) {
        state.steady = last - state.since;
        state.steady_gaps = number - state.since_number - 1;
    }
    state.since = now;
    state.since_number = number;
    state.away += late;
    if (index >= PAUSES_MAX)
        return;
    state.pause[index & (PAUSES_MAX - 1)].number = number;
    state.pause[index & (PAUSES_MAX - 1)].late = late;
    state.pauses = index + 1;
}

/* Counts what is late and finds when the next is due, to the nanosecond. */
inline void schedule(u64 due, u64 now)
{
    u64 late = now - due, left = state.burst_left;
    if (late > state.late_above) {
        state.late++;
        if (late > state.worst)
            state.worst = late;
    }
    /* A burst that is too late moves the schedule when its first frame leaves. */
    if (left == state.burst && late >= state.moves_from)
        state.due = due = now;
    state.burst_left = left - 1;
    if (left != 1)
        return;
    state.burst_left = state.burst;
    due += state.step;
    u64 rest = state.due_rest + state.step_rest;
    if (rest >= state.divisor) {
        rest -= state.divisor;
        due++;
    }
    state.due_rest = rest;
    state.due = due;
}

/* A place in the frame; the verifier wants to see both bounds. */
#define PLACE(type, at)                                     \
    ({                                                      \
        u8 *place = data + ((at) & 0xfff);                  \
        if (place + sizeof(type) > end)                     \
            return 0;                                       \
        (type *)place;                                      \
    })

inline int store_header(u8 *data, u8 *end, const volatile struct template *template)
{
    u64 restored = template->restored, at = restored & (HEADER_BYTES - 8);
    const volatile u8 *header = template->header;
    if (restored == HEADER_BYTES && data + HEADER_BYTES <= end) {
#pragma unroll
        for (int word = 0; word < HEADER_BYTES; word += 8)
            *(u64 *)(data + word) = *(const volatile u64 *)(header + word);
        return 1;
    }
#pragma unroll
    for (int word = 0; word < HEADER_BYTES - 8; word += 8)
        if (word + 8 <= restored)
            *PLACE(u64, word) = *(const volatile u64 *)(header + word);
    if (restored & 4) {
        *PLACE(u32, at) = *(const volatile u32 *)(header + at);
        at += 4;
    }
    if (restored & 2) {
        *PLACE(u16, at) = *(const volatile u16 *)(header + at);
        at += 2;
    }
    if (restored & 1)
        *PLACE(u8, at) = header[at];
    return 1;
}

/* Stores the fields of the flow and the header's checksum; `sum` = what they add to the transport's. */
inline int store_flow(u8 *data, u8 *end, const volatile struct template *template, u64 number,
                      u64 *sum)
{
    u64 header = template->header_start, flow = number;
    if (template->shuffled)
        flow = (number * 0x9e3779b97f4a7c15ULL >> 32) * template->flows >> 32;
    else
        flow = number % template->flows;
#pragma unroll
    for (int i = 0; i < FIELDS; i++) {
        if (i >= template->fields)
            break;
        const volatile struct field *field = &template->field[i];
        u64 value = (u32)(flow / field->divisor % field->count + field->base);
        if (field->width == 2) {
            value &= 0xffff;
            *PLACE(u16, field->at) = be16((u16)value);
        } else
            *PLACE(u32, field->at) = be32((u32)value);
        if (field->in_header_sum)
            header += value;
        if (field->in_transport_sum)
            *sum += value;
    }
    if (template->has_header_sum)
        *PLACE(u16, template->header_sum_at) = be16((u16)(fold(header) ^ 0xffff));
    return 1;
}

/* 0 when the frame has another length than it was made with. */
inline int make(struct frame *frame, const volatile struct template *template, u64 number, u64 now)
{
    if (template->shorter_by && xdp_adjust_tail(frame, -(int)template->shorter_by))
        return 0;
    u64 bytes = template->payload_bytes & 0xfff;
    if (bytes && xdp_store_bytes(frame, template->restored,
                                 payload + (template->payload_at & 0xffff), bytes))
        return 0;
    u8 *data = (u8 *)(u64)frame->data, *end = (u8 *)(u64)frame->data_end;
    if (data + (template->length & 0x1fff) > end || !store_header(data, end, template))
        return 0;
    u64 sum = 0;
    if (template->fields && !store_flow(data, end, template, number, &sum))
        return 0;
    u64 high = state.signed_as | number >> 32, low = number << 32 | (u32)now;
    u64 added = (u32)high + (high >> 32) + (u32)number + (u32)now;
    struct halves *signature = PLACE(struct halves, template->signature_at);
    signature->high = be64(high);
    signature->low = be64(low);
    if (!template->has_balance)
        return 1;
    if (template->balance_is_odd) {
        /* Its bytes lie the other way round in the words of the sum. */
        added = fold(added);
        added = (added >> 8 | added << 8) & 0xffff;
    }
    sum = (fold(sum + added) ^ 0xffff) + template->balance_start;
    *PLACE(u16, template->balance_at) = be16((u16)fold(sum));
    return 1;
}

/* Whether the frame is due, and the time; waits for one that is nearly. */
inline int is_due(u64 due, u64 *now)
{
    if (*now >= due)
        return 1;
    if (due - *now >= state.spin_below)
        return 0;
    for (int spins = 0; spins < SPINS; spins++) {
        *now = ktime_get_ns();
        if (*now >= due)
            return 1;
    }
    return 0;
}

/* The template of the frame, by the mix. */
inline u64 choose(void)
{
    u64 at = state.mix_at & (MIX_MAX - 1);
    state.mix_at = at + 1 < state.mix_length ? at + 1 : 0;
    return state.mix[at] & (TEMPLATES - 1);
}

program("generate") int generate(struct frame *frame)
{
    u64 number = state.next;
    if (number >= state.end)
        return XDP_DROP;
    u64 now = ktime_get_ns();
    /* The first call after a frame tells when that one was through. */
    if (!state.after)
        state.after = now;
    if (state.paced) {
        u64 due = state.due;
        if (!is_due(due, &now))
            return XDP_DROP;
        play(held_up(), number, now);
        count_pause(now - due, number, now);
        schedule(due, now);
    }
    u64 chosen = templates.count > 1 ? choose() : 0;
    const volatile struct template *template = &templates.template[chosen];
    if (!make(frame, template, number, now)) {
        state.broken++;
        return XDP_DROP;
    }
    state.bytes += template->length;
    state.next = number + 1;
    if (!state.first)
        state.first = now;
    state.last = now;
    state.after = 0;
    return redirect_map(&devices, 0, 0);
}
