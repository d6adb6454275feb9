/* Forwarding: a router by the kernel's own tables (bpf_fib_lookup), a wire between two interfaces, and
 * a program that leaves every frame to the kernel. */
#include "frame.h"

enum { AF_INET = 2, AF_INET6 = 10 };

/* struct bpf_fib_lookup of linux/bpf.h */
struct route {
    u8 family, protocol;
    u16 source_port, destination_port, length;
    u32 ifindex, tos, source[4], destination[4];
    u16 vlan_protocol, vlan;
    u8 from[6], to[6];
};
static long (*const fib_lookup)(struct frame *, struct route *, int bytes, u32 flags) = (void *)69;

extern u64 counts[];
extern struct {
} devices;
extern const volatile struct {
    u64 flags;
} plan;

enum { IN, FORWARDED, PASSED };

inline void count(int word)
{
    __sync_fetch_and_add(&counts[word], 1);
}

/* Whether the router may forward the frame itself: no options, hops left. */
inline int ask(u8 *data, u8 *end, struct route *route)
{
    u8 *ip = data + 14;
    if (data + 34 > end)
        return 0;
    u16 type = be16(*(u16 *)(data + 12));
    if (type == 0x0800 && ip[0] == 0x45 && ip[8] > 1) {
        route->family = AF_INET;
        *(u8 *)&route->tos = ip[1];
        route->protocol = ip[9];
        route->length = be16(*(u16 *)(ip + 2));
        route->source[0] = *(u32 *)(ip + 12);
        route->destination[0] = *(u32 *)(ip + 16);
        return 1;
    }
    if (type == 0x86dd && data + 54 <= end && ip[7] > 1) {
        route->family = AF_INET6;
        route->protocol = ip[6];
        route->length = be16(*(u16 *)(ip + 4)) + 40;
        __builtin_memcpy(route->source, ip + 8, 16);
        __builtin_memcpy(route->destination, ip + 24, 16);
        return 1;
    }
    return 0;
}

program("route") int route(struct frame *frame)
{
    count(IN);
    u8 *data = (u8 *)(u64)frame->data, *end = (u8 *)(u64)frame->data_end, *ip = data + 14;
    struct route route = {.family = 0};
    if (!ask(data, end, &route))
        goto pass;
    route.ifindex = frame->ingress_ifindex;
    if (fib_lookup(frame, &route, sizeof(route), 0))
        goto pass;
    /* The hop count less one, its checksum, and the addresses of the next link. */
    if (be16(*(u16 *)(data + 12)) == 0x0800) {
        ip[8]--;
        u32 sum = be16(*(u16 *)(ip + 10)) + 0x100;
        *(u16 *)(ip + 10) = be16((u16)(sum + (sum >= 0xffff)));
    } else {
        /* Again, because the verifier has not seen this way through the frame. */
        if (data + 54 > end)
            return XDP_DROP;
        ip[7]--;
    }
    __builtin_memcpy(data, route.to, 6);
    __builtin_memcpy(data + 6, route.from, 6);
    count(FORWARDED);
    return redirect(route.ifindex, 0);
pass:
    count(PASSED);
    return XDP_PASS;
}

program("wire") int wire(struct frame *frame)
{
    count(IN);
    return redirect_map(&devices, 0, plan.flags);
}

program("pass") int pass(struct frame *frame)
{
    return XDP_PASS;
}
