/* A GPU that is made to fail: what it says, that it is reopened or says why it is not, and what becomes of another
   device on the same card. */
#include <stdio.h>
#include <string.h>

#include "check.h"

static bool gathers(mt_device *dev, uint32_t row)
{
    const float want[2] = {1, 2};
    float got[2];
    mt_set *set = mt_set_new(dev);
    mt_tensor *x = mt_tensor_of(set, want, 2, 1), *y = mt_tensor_new(set, 1, 1);
    mt_reading *reading = mt_reading_new(set, sizeof(got));
    mt_op_gather(dev, y, x, mt_index_of(set, &row, 1), 1);
    mt_read_rows(dev, reading, y, 0, 1);
    memcpy(got, mt_reading_row(dev, reading, 0), sizeof(*got));
    const bool well = mt_device_well(dev, NULL);
    mt_set_free(set);
    return well && row < 2 && got[0] == want[row];
}

bool check_fault(const char *name)
{
    const mt_device_params params = {.name = name, .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_error err = {0};
    mt_device *dev = mt_device_open(&params, &err);
    if (!dev || !mt_device_apart(dev)) {
        printf("checkdevice: %s\n", dev ? "only a GPU can be made to fail" : err.text);
        mt_device_close(dev);
        return false;
    }
    mt_device *other = mt_device_open(&params, &err);
    bool ok = other && gathers(other, 1);
    mt_device_enter(dev);
    ok = gathers(dev, 1) && ok;
    ok = !gathers(dev, 0xfffffff0u) && ok; /* far outside of all memory */
    ok = !mt_device_well(dev, &err) && ok;
    printf("a fault: %s\n", err.text);
    mt_error_clear(&err);
    if (other) { /* which goes on, or says that it does not */
        mt_device_enter(other);
        const bool goes_on = gathers(other, 1);
        ok = (goes_on || !mt_device_well(other, &err)) && ok;
        printf("another device: %s\n", goes_on ? "goes on" : err.text);
        mt_device_close(other);
        mt_error_clear(&err);
    }
    /* a driver may give this process no context any more, and says so */
    const bool renewed = mt_device_renew(dev, &err);
    ok = (renewed ? gathers(dev, 0) : err.text[0] != '\0') && ok;
    printf("reopened: %s\n", renewed ? mt_device_name(dev) : err.text);
    mt_device_close(dev);
    printf("checkdevice: %d passed, %d failed\n", ok, !ok);
    return ok;
}
