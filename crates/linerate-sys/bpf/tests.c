/* Programs of the tests. */
#include "frame.h"

extern u64 words[];
extern struct spread spread;
extern struct {
} devices;
extern const volatile struct {
    u64 a, b;
} plan;

program("touch") int touch(struct frame *frame)
{
    u8 *data = (u8 *)(u64)frame->data, *end = (u8 *)(u64)frame->data_end;
    if (data + 14 > end)
        return XDP_DROP;
    *(u16 *)(data + 12) = be16(be16(*(u16 *)(data + 12)) + 1);
    return XDP_TX;
}

program("share") int share(struct frame *frame)
{
    words[1] = 0x0123456789abcdef;
    return __sync_fetch_and_or(&words[2], plan.b);
}

program("unchecked") int unchecked(struct frame *frame)
{
    return *(u8 *)(u64)frame->data;
}

program("spread") int count_first(struct frame *frame)
{
    u64 *data = (u64 *)(u64)frame->data, *end = (u64 *)(u64)frame->data_end;
    if (data + 1 <= end)
        count_time(&spread, *data);
    return XDP_DROP;
}

program("inject") int inject(struct frame *frame)
{
    return redirect_map(&devices, 0, 0);
}
