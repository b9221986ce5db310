/* The Vulkan device's data structures, shared by the files of this folder. */
#ifndef MT_DEVICE_VULKAN_VULKAN_H
#define MT_DEVICE_VULKAN_VULKAN_H

#include "device/fallback.h"
#include "device/rules.h"
#include "device/vulkan/driver.h"
#include "device/vulkan/shaders.h"

enum {
    MT_VULKAN_STEP_WORDS = 1 << 20, /* of the step's rows and page tables, at first */
    MT_VULKAN_GROUPS = 65535,       /* most groups of a shader side by side: every driver runs so many */
    MT_VULKAN_LISTS = 8,            /* lists of commands that may wait or run at once */
    MT_VULKAN_COMMANDS = 64,        /* of a list, before it is submitted */
    MT_VULKAN_STAGING = 8 << 20, /* bytes of memory through which the host writes, and of that through which it reads */
    MT_VULKAN_BLOCK = 32 << 20,  /* bytes that are allocated at once for small pieces of memory */
    MT_VULKAN_ALIGN = 256,       /* where a piece begins */
    MT_VULKAN_ARGUMENTS = 128,   /* most bytes of a shader's arguments: every driver has so many */
    MT_VULKAN_ROW_WORDS = 8      /* words of a row of the step: token, seen_from, seen, end, page tables */
};

/* Memory as the driver gives it, with a buffer over all of it. Pieces are taken from its begin on; it is freed with its
   last piece. */
typedef struct mt_vulkan_block {
    VkDeviceMemory memory;
    VkBuffer buffer;
    VkDeviceAddress address;
    uint8_t *host; /* where the host sees it; NULL: it does not */
    bool cached;   /* the host reads it as fast as its own memory */
    size_t bytes, used, pieces;
} mt_vulkan_block;

struct mt_memory {
    mt_vulkan_block *block;
    size_t at, bytes;
};

typedef struct mt_vulkan_list {
    VkCommandBuffer commands;
    uint64_t ends; /* the value of the semaphore when it has run */
} mt_vulkan_list;

struct mt_device {
    mt_device_head head;
    int number; /* of the GPU, among all */
    mt_vulkan_driver vk;
    VkInstance instance;
    VkPhysicalDevice gpu;
    VkDevice device;
    VkQueue queue;
    VkPhysicalDeviceMemoryProperties types;
    bool budget, processor; /* VK_EXT_memory_budget is there; the device is the CPU */
    char name[160];
    VkPipelineLayout layout;
    VkPipeline pipeline[MT_VULKAN_SHADERS]; /* made when they are first used */

    /* the queue: lists are recorded, submitted and used again in turn */
    VkCommandPool pool;
    VkSemaphore semaphore; /* counts lists that have run */
    mt_vulkan_list list[MT_VULKAN_LISTS];
    uint64_t submitted; /* lists so far; the present one is number submitted % MT_VULKAN_LISTS */
    uint64_t ended;     /* lists that are known to have run */
    size_t commands;    /* of the present list; 0: it is not begun */

    mt_vulkan_block *open; /* pieces are taken from it; NULL: none */
    mt_vulkan_block *up, *down;
    size_t staged; /* bytes of `up` that a list still reads */

    /* working memory: rows packed for a product; the step's rows and page tables, and the host's copy of them */
    mt_memory *packed, *step;
    uint32_t *step_host;
    size_t step_words;   /* of both */
    size_t rows, most_k; /* rows: of the largest step; most_k: columns of the widest weight of codes */
    size_t batch_rows;
    bool follows; /* some of the step's tokens are chosen by the device */

    bool failed;
    char why[200]; /* the first fault */
};

/* Sets up what Vulkan needs, from the loader on; false with a sentence. close: also of one that is half set up. */
bool mt_vulkan_open_gpu(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_vulkan_close_gpu(mt_device *dev);

/* Whether a call succeeded and none has failed before; remembers the first fault. what: "compute". */
bool mt_vulkan_ok(mt_device *dev, VkResult result, const char *what);

/* The present list, behind a barrier: what is recorded next sees the results of everything before. NULL where the
   device has failed. */
VkCommandBuffer mt_vulkan_record(mt_device *dev);

/* Hands the present list to the device; finish also waits until everything has run. */
void mt_vulkan_submit(mt_device *dev);
void mt_vulkan_finish(mt_device *dev);

/* Runs a shader in so many groups, with at most 128 bytes of arguments. */
void mt_vulkan_run(mt_device *dev, mt_vulkan_shader shader, const void *arguments, size_t bytes, size_t x, size_t y,
                   size_t z);

/* Memory; see backend.h. */
mt_memory *mt_vulkan_memory_new(mt_device *dev, size_t bytes);
void mt_vulkan_memory_free(mt_device *dev, mt_memory *m);
void mt_vulkan_memory_write(mt_device *dev, mt_memory *m, size_t at, const void *data, size_t bytes);
void mt_vulkan_memory_read(mt_device *dev, const mt_memory *m, size_t at, void *data, size_t bytes);
bool mt_vulkan_memory_open(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_vulkan_memory_close(mt_device *dev);
uint64_t mt_vulkan_device_memory(const mt_device *dev);

static inline VkDeviceAddress mt_vulkan_address(const mt_memory *m)
{
    return m ? m->block->address + m->at : 0;
}

#endif
