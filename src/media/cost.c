/* See cost.h. */
#include "media/cost.h"

#include "media/container.h"
#include "media/image.h"

uint64_t mt_media_cost(const void *data, size_t size)
{
    const uint64_t picture = mt_image_work(data, size);

    return picture ? picture : mt_container_work(data, size);
}
