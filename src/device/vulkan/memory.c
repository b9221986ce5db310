/* Memory of the Vulkan device. Small pieces share blocks, as a driver may refuse more than some thousand of these. What
   the host sees is read and written in place while nothing runs; all else goes through two buffers of staging. */
#include "device/vulkan/vulkan.h"

#include <string.h>

#include "base/alloc.h"
#include "device/host.h"

/* The first type among those allowed that has all wanted flags; -1: none. */
static int find_type(const mt_device *dev, uint32_t allowed, VkMemoryPropertyFlags wanted)
{
    for (uint32_t i = 0; i < dev->types.memoryTypeCount; i++)
        if (allowed >> i & 1 && (dev->types.memoryTypes[i].propertyFlags & wanted) == wanted)
            return (int)i;
    return -1;
}

enum { SEEN = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT };

/* Flags in the order in which they are tried: the device's own memory, which the host sees at full speed where both
   share it; staging that the host writes, or reads. */
static const VkMemoryPropertyFlags wishes[3][3] = {
    {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | SEEN | VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
     VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
    {SEEN, SEEN, SEEN},
    {SEEN | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, SEEN, SEEN}};

static void free_block(mt_device *dev, mt_vulkan_block *b)
{
    if (b && b->buffer)
        dev->vk.DestroyBuffer(dev->device, b->buffer, NULL);
    if (b && b->memory)
        dev->vk.FreeMemory(dev->device, b->memory, NULL);
    mt_free(b);
}

/* use: a row of wishes. NULL where there is no memory left. */
static mt_vulkan_block *new_block(mt_device *dev, size_t bytes, size_t use)
{
    mt_vulkan_block *b = mt_alloc(sizeof(*b));
    const VkBufferCreateInfo buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                       .size = bytes,
                                       .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                                                VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryRequirements needs;
    *b = (mt_vulkan_block){.bytes = bytes};
    if (dev->failed || dev->vk.CreateBuffer(dev->device, &buffer, NULL, &b->buffer)) {
        free_block(dev, b);
        return NULL;
    }
    dev->vk.GetBufferMemoryRequirements(dev->device, b->buffer, &needs);
    int type = -1;
    for (size_t i = 0; type < 0 && i < MT_COUNT(wishes[use]); i++)
        type = find_type(dev, needs.memoryTypeBits, wishes[use][i]);
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                         .pNext = &flags,
                                         .allocationSize = needs.size,
                                         .memoryTypeIndex = type < 0 ? 0 : (uint32_t)type};
    if (type < 0 || dev->vk.AllocateMemory(dev->device, &memory, NULL, &b->memory) ||
        dev->vk.BindBufferMemory(dev->device, b->buffer, b->memory, 0)) {
        free_block(dev, b);
        return NULL;
    }
    const VkMemoryPropertyFlags has = dev->types.memoryTypes[type].propertyFlags;
    void *host = NULL;
    if ((has & SEEN) == SEEN && dev->vk.MapMemory(dev->device, b->memory, 0, VK_WHOLE_SIZE, 0, &host) == VK_SUCCESS)
        b->host = host;
    b->cached = has & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    const VkBufferDeviceAddressInfo where = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = b->buffer};
    b->address = dev->vk.GetBufferDeviceAddress(dev->device, &where);
    return b;
}

bool mt_vulkan_memory_open(mt_device *dev, mt_error *err)
{
    dev->up = new_block(dev, MT_VULKAN_STAGING, 1);
    dev->down = new_block(dev, MT_VULKAN_STAGING, 2);
    return (dev->up && dev->up->host && dev->down && dev->down->host) ||
           mt_fail(err, MT_E_MEMORY, "%s has no memory that the host sees; use --device cpu", dev->name);
}

void mt_vulkan_memory_close(mt_device *dev)
{
    if (dev->open && dev->open->pieces == 0)
        free_block(dev, dev->open);
    free_block(dev, dev->up);
    free_block(dev, dev->down);
    dev->open = dev->up = dev->down = NULL;
}

static mt_vulkan_block *block_for(mt_device *dev, size_t bytes)
{
    if (bytes > MT_VULKAN_BLOCK / 2)
        return new_block(dev, bytes, 0);
    if (dev->open && bytes <= dev->open->bytes - dev->open->used)
        return dev->open;
    mt_vulkan_block *b = new_block(dev, MT_VULKAN_BLOCK, 0);
    if (b && dev->open && dev->open->pieces == 0)
        free_block(dev, dev->open);
    if (b)
        dev->open = b;
    return b;
}

mt_memory *mt_vulkan_memory_new(mt_device *dev, size_t bytes)
{
    const size_t all = (bytes + MT_VULKAN_ALIGN - 1) / MT_VULKAN_ALIGN * MT_VULKAN_ALIGN;
    mt_vulkan_block *b = block_for(dev, all);
    if (!b)
        return NULL;
    mt_memory *m = mt_alloc(sizeof(*m));
    *m = (mt_memory){.block = b, .at = b->used, .bytes = bytes};
    b->used += all;
    b->pieces++;
    const VkCommandBuffer commands = mt_vulkan_record(dev);
    if (commands)
        dev->vk.CmdFillBuffer(commands, b->buffer, m->at, all, 0);
    return m;
}

void mt_vulkan_memory_free(mt_device *dev, mt_memory *m)
{
    mt_vulkan_block *b = m->block;
    if (--b->pieces == 0) {
        mt_vulkan_finish(dev);
        if (b == dev->open)
            b->used = 0;
        else
            free_block(dev, b);
    }
    mt_free(m);
}

static bool idle(const mt_device *dev)
{
    return dev->commands == 0 && dev->submitted == dev->ended;
}

void mt_vulkan_memory_write(mt_device *dev, mt_memory *m, size_t at, const void *data, size_t bytes)
{
    if (m->block->host && idle(dev)) {
        memcpy(m->block->host + m->at + at, data, bytes);
        return;
    }
    for (size_t done = 0; done < bytes && !dev->failed;) {
        if (MT_VULKAN_STAGING - dev->staged < (bytes - done < 4096 ? bytes - done : 4096))
            mt_vulkan_finish(dev);
        const size_t room = MT_VULKAN_STAGING - dev->staged, n = bytes - done < room ? bytes - done : room;
        memcpy(dev->up->host + dev->staged, (const uint8_t *)data + done, n);
        const VkBufferCopy copy = {.srcOffset = dev->staged, .dstOffset = m->at + at + done, .size = n};
        const VkCommandBuffer commands = mt_vulkan_record(dev);
        if (commands)
            dev->vk.CmdCopyBuffer(commands, dev->up->buffer, m->block->buffer, 1, &copy);
        dev->staged += n;
        done += n;
    }
}

void mt_vulkan_memory_read(mt_device *dev, const mt_memory *m, size_t at, void *data, size_t bytes)
{
    if (m->block->host && m->block->cached) {
        mt_vulkan_finish(dev);
        memcpy(data, m->block->host + m->at + at, bytes);
        return;
    }
    for (size_t done = 0; done < bytes && !dev->failed;) {
        const size_t n = bytes - done < MT_VULKAN_STAGING ? bytes - done : MT_VULKAN_STAGING;
        const VkBufferCopy copy = {.srcOffset = m->at + at + done, .size = n};
        const VkCommandBuffer commands = mt_vulkan_record(dev);
        if (commands)
            dev->vk.CmdCopyBuffer(commands, m->block->buffer, dev->down->buffer, 1, &copy);
        mt_vulkan_finish(dev);
        memcpy((uint8_t *)data + done, dev->down->host, n);
        done += n;
    }
    if (dev->failed)
        memset(data, 0, bytes);
}

uint64_t mt_vulkan_device_memory(const mt_device *dev)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                                .pNext = dev->budget ? &budget : NULL};
    uint64_t most = 0;
    if (dev->processor)
        return mt_host_memory();
    dev->vk.GetPhysicalDeviceMemoryProperties2(dev->gpu, &memory);
    for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &memory.memoryProperties.memoryHeaps[i];
        const uint64_t bytes = dev->budget ? budget.heapBudget[i] : heap->size;
        if (heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && bytes > most)
            most = bytes;
    }
    return most;
}
