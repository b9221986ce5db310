/* Opens a GPU by Vulkan: instance, device, queue, and what the device must be able to do. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "device/vulkan/vulkan.h"

enum { MOST_GPUS = 16, MOST_EXTENSIONS = 512 };

static bool has_extension(const VkExtensionProperties *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].extensionName, name) == 0)
            return true;
    return false;
}

static bool open_instance(mt_device *dev, mt_error *err)
{
    VkExtensionProperties *list = mt_alloc_array(MOST_EXTENSIONS, sizeof(*list));
    uint32_t count = MOST_EXTENSIONS;
    if (dev->vk.EnumerateInstanceExtensionProperties(NULL, &count, list) < 0)
        count = 0;
    /* without this extension the loader hides drivers of Apple's GPUs, which lack parts of Vulkan */
    const char *const names[] = {VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME};
    const bool some = has_extension(list, count, names[0]);
    mt_free(list);
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .pApplicationName = "motet",
                                   .pEngineName = "motet",
                                   .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .flags = some ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0,
                                       .pApplicationInfo = &app,
                                       .enabledExtensionCount = some,
                                       .ppEnabledExtensionNames = names};
    const VkResult result = dev->vk.CreateInstance(&info, NULL, &dev->instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "there is no Vulkan driver here (Debian: mesa-vulkan-drivers; NVIDIA's comes with its driver); "
                       "use --device cpu");
    if (result)
        return mt_fail(err, MT_E_UNSUPPORTED, "Vulkan does not start: %s", mt_vulkan_text(result));
    return mt_vulkan_driver_instance(&dev->vk, dev->instance, err);
}

/* The order in which GPUs are numbered: first those with memory of their own, then those that share the processor's
   memory, then virtual ones, and processors last. */
static int rank_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 4;
    default: return 3;
    }
}

static VkPhysicalDeviceProperties properties_of(const mt_device *dev, VkPhysicalDevice gpu, void *more)
{
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = more};
    dev->vk.GetPhysicalDeviceProperties2(gpu, &p);
    return p.properties;
}

static bool choose_gpu(mt_device *dev, mt_error *err)
{
    VkPhysicalDevice gpus[MOST_GPUS];
    uint32_t count = MOST_GPUS;
    int seen = 0;
    if (dev->vk.EnumeratePhysicalDevices(dev->instance, &count, gpus) < 0)
        count = 0;
    for (int rank = 0; rank <= 4; rank++)
        for (uint32_t i = 0; i < count; i++) {
            const VkPhysicalDeviceProperties p = properties_of(dev, gpus[i], NULL);
            if (rank_of(p.deviceType) != rank || seen++ != dev->number)
                continue;
            dev->gpu = gpus[i];
            dev->processor = p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
            snprintf(dev->name, sizeof(dev->name), "vulkan (%.120s)", p.deviceName);
            if (p.apiVersion < VK_API_VERSION_1_2)
                return mt_fail(err, MT_E_UNSUPPORTED, "%s has Vulkan %u.%u; 1.2 or later is needed", dev->name,
                               VK_API_VERSION_MAJOR(p.apiVersion), VK_API_VERSION_MINOR(p.apiVersion));
            return true;
        }
    if (seen == 0)
        return mt_fail(err, MT_E_NOT_FOUND, "Vulkan finds no GPU here (vulkaninfo says more); use --device cpu");
    return mt_fail(err, MT_E_NOT_FOUND, "there is no device vulkan:%d; Vulkan finds %d, counted from 0", dev->number,
                   seen);
}

/* A family of queues that compute; UINT32_MAX: there is none. */
static uint32_t find_family(const mt_device *dev)
{
    VkQueueFamilyProperties families[32];
    uint32_t count = MT_COUNT(families);
    dev->vk.GetPhysicalDeviceQueueFamilyProperties(dev->gpu, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)
            return i;
    return UINT32_MAX;
}

/* What the arithmetic needs: sums and products rounded to nearest even, and integers of 64 bits. */
static bool check_features(const mt_device *dev, mt_error *err)
{
    VkPhysicalDeviceVulkan12Properties p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
    VkPhysicalDeviceVulkan12Features f = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &f};
    (void)properties_of(dev, dev->gpu, &p);
    dev->vk.GetPhysicalDeviceFeatures2(dev->gpu, &all);
    const char *lacks = !f.bufferDeviceAddress                     ? "bufferDeviceAddress"
                        : !f.timelineSemaphore                     ? "timelineSemaphore"
                        : !all.features.shaderInt64                ? "shaderInt64"
                        : !p.shaderRoundingModeRTEFloat32          ? "shaderRoundingModeRTEFloat32"
                        : !p.shaderSignedZeroInfNanPreserveFloat32 ? "shaderSignedZeroInfNanPreserveFloat32"
                                                                   : NULL;
    return !lacks || mt_fail(err, MT_E_UNSUPPORTED, "the driver of %s lacks %s, which motet needs; use --device cpu",
                             dev->name, lacks);
}

static bool open_device(mt_device *dev, mt_error *err)
{
    const float priority = 1;
    const uint32_t family = find_family(dev);
    if (family == UINT32_MAX)
        return mt_fail(err, MT_E_UNSUPPORTED, "%s has no queue that computes; use --device cpu", dev->name);
    VkExtensionProperties *list = mt_alloc_array(MOST_EXTENSIONS, sizeof(*list));
    const char *names[2];
    uint32_t count = MOST_EXTENSIONS, used = 0;
    if (dev->vk.EnumerateDeviceExtensionProperties(dev->gpu, NULL, &count, list) < 0)
        count = 0;
    dev->budget = has_extension(list, count, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    if (dev->budget)
        names[used++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (has_extension(list, count, "VK_KHR_portability_subset"))
        names[used++] = "VK_KHR_portability_subset";
    mt_free(list);
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    VkPhysicalDeviceVulkan12Features features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                 .bufferDeviceAddress = VK_TRUE,
                                                 .timelineSemaphore = VK_TRUE};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = used,
                                     .ppEnabledExtensionNames = names,
                                     .pEnabledFeatures = &(VkPhysicalDeviceFeatures){.shaderInt64 = VK_TRUE}};
    const VkResult result = dev->vk.CreateDevice(dev->gpu, &info, NULL, &dev->device);
    if (result)
        return mt_fail(err, MT_E_UNSUPPORTED, "%s does not open: %s", dev->name, mt_vulkan_text(result));
    if (!mt_vulkan_driver_device(&dev->vk, dev->device, err))
        return false;
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    dev->vk.GetPhysicalDeviceMemoryProperties2(dev->gpu, &memory);
    dev->types = memory.memoryProperties;
    dev->vk.GetDeviceQueue(dev->device, family, 0, &dev->queue);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = family};
    if (dev->vk.CreateCommandPool(dev->device, &pool, NULL, &dev->pool))
        return mt_fail(err, MT_E_MEMORY, "%s has no memory for commands", dev->name);
    return true;
}

static bool open_queue(mt_device *dev, mt_error *err)
{
    VkCommandBuffer commands[MT_VULKAN_LISTS];
    const VkCommandBufferAllocateInfo lists = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                               .commandPool = dev->pool,
                                               .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                               .commandBufferCount = MT_VULKAN_LISTS};
    const VkSemaphoreTypeCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                                .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &timeline};
    const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = MT_VULKAN_ARGUMENTS};
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &range};
    if (dev->vk.AllocateCommandBuffers(dev->device, &lists, commands) ||
        dev->vk.CreateSemaphore(dev->device, &semaphore, NULL, &dev->semaphore) ||
        dev->vk.CreatePipelineLayout(dev->device, &layout, NULL, &dev->layout))
        return mt_fail(err, MT_E_MEMORY, "%s has no memory for commands", dev->name);
    for (size_t i = 0; i < MT_VULKAN_LISTS; i++)
        dev->list[i] = (mt_vulkan_list){.commands = commands[i]};
    return true;
}

bool mt_vulkan_open_gpu(mt_device *dev, mt_error *err)
{
    if (mt_vulkan_driver_open(&dev->vk, err) && open_instance(dev, err) && choose_gpu(dev, err) &&
        check_features(dev, err) && open_device(dev, err) && open_queue(dev, err) && mt_vulkan_memory_open(dev, err))
        return true;
    mt_vulkan_close_gpu(dev);
    return false;
}

void mt_vulkan_close_gpu(mt_device *dev)
{
    if (dev->device && dev->vk.DestroyDevice) {
        if (dev->vk.DeviceWaitIdle)
            (void)dev->vk.DeviceWaitIdle(dev->device);
        mt_vulkan_memory_close(dev);
        for (size_t i = 0; i < MT_VULKAN_SHADERS; i++)
            if (dev->pipeline[i])
                dev->vk.DestroyPipeline(dev->device, dev->pipeline[i], NULL);
        if (dev->layout)
            dev->vk.DestroyPipelineLayout(dev->device, dev->layout, NULL);
        if (dev->semaphore)
            dev->vk.DestroySemaphore(dev->device, dev->semaphore, NULL);
        if (dev->pool)
            dev->vk.DestroyCommandPool(dev->device, dev->pool, NULL);
        dev->vk.DestroyDevice(dev->device, NULL);
    }
    if (dev->instance && dev->vk.DestroyInstance)
        dev->vk.DestroyInstance(dev->instance, NULL);
    memset(dev->pipeline, 0, sizeof(dev->pipeline));
    dev->device = VK_NULL_HANDLE;
    dev->instance = VK_NULL_HANDLE;
    dev->layout = VK_NULL_HANDLE;
    dev->semaphore = VK_NULL_HANDLE;
    dev->pool = VK_NULL_HANDLE;
    dev->submitted = dev->ended = 0;
    dev->commands = dev->staged = 0;
    dev->failed = false;
}
