/* A planted device: a queue in virtual time, loss and stalls (src/xdp/planted_program.rs).
 * A queue of one server, first come first served: a frame starts at max(arrival, finish of the one
 * before). Of B places one is free at an arrival iff the frame admitted B before has left. */
#include "frame.h"

#define PS_PER_SEC 1000000000000ULL

extern struct {
    u64 in, forwarded, by_queue, by_chance, in_stall, wait_max, admitted, free_at, began, random;
    u64 upper, others;
} state;
/* Finish times of the last admitted frames, ps. */
extern u64 ring[];
extern struct {
} devices;
/* 0 where a limit, loss or stalls are absent; times in ps. */
extern const volatile struct {
    u64 mask, buffer, one_in, per_frame, overhead, bytes_per_sec, every, stall_at, stall;
    u64 store_and_forward, latency_ns;
} plan;

/* Xorshift with the shifts 13, 7, 17 (Marsaglia 2003); the high half decides. */
inline int lost_by_chance(void)
{
    u64 random = state.random;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    state.random = random;
    return (random >> 32) * plan.one_in >> 32 == 0;
}

inline int in_stall(u64 at)
{
    return plan.every && at % plan.every >= plan.stall_at;
}

/* The stamp goes back by what the device would have taken. */
inline void delay(struct frame *frame, u64 length, u32 stamp)
{
    stamp = be32(stamp);
    u32 *last = last_bytes(frame, length, 4);
    if (last)
        *last = stamp;
    else
        xdp_store_bytes(frame, length - 4, &stamp, 4);
}

program("plant") int plant(struct frame *frame)
{
    u64 halves[2], length;
    if (!read_signature(frame, 1, halves, &length) || halves[0] >> 48 != state.upper) {
        state.others++;
        return redirect_map(&devices, 0, 0);
    }
    state.in++;
    if (plan.one_in && lost_by_chance()) {
        state.by_chance++;
        return XDP_DROP;
    }
    u64 now = (ktime_get_ns() - state.began) * 1000;
    if (ring[(state.admitted - plan.buffer) & plan.mask] > now) {
        if (in_stall(now))
            state.in_stall++;
        else
            state.by_queue++;
        return XDP_DROP;
    }
    u64 start = state.free_at < now ? now : state.free_at;
    if (in_stall(start))
        start += plan.every - start % plan.every;
    if (start - now > state.wait_max)
        state.wait_max = start - now;
    u64 service = plan.per_frame, finish = start;
    if (plan.bytes_per_sec) {
        u64 by_length = (length + plan.overhead) * PS_PER_SEC / plan.bytes_per_sec;
        if (service < by_length)
            service = by_length;
    }
    if (plan.every && start % plan.every + service > plan.stall_at)
        finish += plan.stall;
    finish += service;
    state.free_at = finish;
    ring[state.admitted++ & plan.mask] = finish;
    state.forwarded++;
    u64 waited = (plan.store_and_forward ? finish : start) - now;
    delay(frame, length, (u32)halves[1] - (u32)(waited / 1000 + plan.latency_ns));
    return redirect_map(&devices, 0, 0);
}
