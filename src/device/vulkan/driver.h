/* The Vulkan loader and its functions, found when motet runs: nothing is linked. Headers alone are needed to build. */
#ifndef MT_DEVICE_VULKAN_DRIVER_H
#define MT_DEVICE_VULKAN_DRIVER_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "base/error.h"

/* Functions of the loader, of an instance, and of a device, without their prefix "vk". */
#define MT_VK_GLOBAL(X) \
    X(CreateInstance)   \
    X(EnumerateInstanceExtensionProperties)

#define MT_VK_INSTANCE(X)                     \
    X(DestroyInstance)                        \
    X(EnumeratePhysicalDevices)               \
    X(EnumerateDeviceExtensionProperties)     \
    X(GetPhysicalDeviceProperties2)           \
    X(GetPhysicalDeviceFeatures2)             \
    X(GetPhysicalDeviceMemoryProperties2)     \
    X(GetPhysicalDeviceQueueFamilyProperties) \
    X(CreateDevice)                           \
    X(GetDeviceProcAddr)

#define MT_VK_DEVICE(X)            \
    X(DestroyDevice)               \
    X(GetDeviceQueue)              \
    X(DeviceWaitIdle)              \
    X(QueueSubmit)                 \
    X(CreateSemaphore)             \
    X(DestroySemaphore)            \
    X(WaitSemaphores)              \
    X(CreateCommandPool)           \
    X(DestroyCommandPool)          \
    X(AllocateCommandBuffers)      \
    X(BeginCommandBuffer)          \
    X(EndCommandBuffer)            \
    X(CmdPipelineBarrier)          \
    X(CmdCopyBuffer)               \
    X(CmdFillBuffer)               \
    X(CmdBindPipeline)             \
    X(CmdPushConstants)            \
    X(CmdDispatch)                 \
    X(CreateBuffer)                \
    X(DestroyBuffer)               \
    X(GetBufferMemoryRequirements) \
    X(GetBufferDeviceAddress)      \
    X(AllocateMemory)              \
    X(FreeMemory)                  \
    X(BindBufferMemory)            \
    X(MapMemory)                   \
    X(CreateShaderModule)          \
    X(DestroyShaderModule)         \
    X(CreatePipelineLayout)        \
    X(DestroyPipelineLayout)       \
    X(CreateComputePipelines)      \
    X(DestroyPipeline)

#define MT_VK_FIELD(name) PFN_vk##name name;
typedef struct mt_vulkan_driver {
    void *library;
    PFN_vkGetInstanceProcAddr find;
    MT_VK_GLOBAL(MT_VK_FIELD)
    MT_VK_INSTANCE(MT_VK_FIELD)
    MT_VK_DEVICE(MT_VK_FIELD)
} mt_vulkan_driver;
#undef MT_VK_FIELD

/* Finds the loader, with its global functions. MT_E_NOT_FOUND where there is none. The library stays loaded: drivers
   have threads of their own. */
bool mt_vulkan_driver_open(mt_vulkan_driver *d, mt_error *err) MT_NODISCARD;

/* Find the functions of an instance, and of a device. */
bool mt_vulkan_driver_instance(mt_vulkan_driver *d, VkInstance instance, mt_error *err) MT_NODISCARD;
bool mt_vulkan_driver_device(mt_vulkan_driver *d, VkDevice device, mt_error *err) MT_NODISCARD;

/* "the device is lost" */
const char *mt_vulkan_text(VkResult result);

#endif
