/* Loads the Vulkan loader (driver.h). */
#include "device/vulkan/driver.h"

#include <dlfcn.h>
#include <string.h>

#if defined(__APPLE__)
#define LIBRARY "libvulkan.1.dylib"
#else
#define LIBRARY "libvulkan.so.1"
#endif

/* Assigns a function to a field of any function type. */
static bool give(void *field, PFN_vkVoidFunction function, const char *name, mt_error *err)
{
    memcpy(field, &function, sizeof(function));
    return function || mt_fail(err, MT_E_UNSUPPORTED,
                               "the Vulkan driver has no vk%s; install a driver for Vulkan 1.2 or later", name);
}

bool mt_vulkan_driver_open(mt_vulkan_driver *d, mt_error *err)
{
    memset(d, 0, sizeof(*d));
    d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!d->library)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "there is no Vulkan here (" LIBRARY
                       "); install it (Debian: libvulkan1 and mesa-vulkan-drivers), or use --device cpu");
    void *find = dlsym(d->library, "vkGetInstanceProcAddr");
    memcpy(&d->find, &find, sizeof(find));
    if (!find)
        return mt_fail(err, MT_E_UNSUPPORTED, LIBRARY " is no Vulkan loader: it has no vkGetInstanceProcAddr");
    bool ok = true;
#define FIND(name) ok = ok && give(&d->name, d->find(NULL, "vk" #name), #name, err);
    MT_VK_GLOBAL(FIND)
#undef FIND
    return ok;
}

bool mt_vulkan_driver_instance(mt_vulkan_driver *d, VkInstance instance, mt_error *err)
{
    bool ok = true;
#define FIND(name) ok = ok && give(&d->name, d->find(instance, "vk" #name), #name, err);
    MT_VK_INSTANCE(FIND)
#undef FIND
    return ok;
}

bool mt_vulkan_driver_device(mt_vulkan_driver *d, VkDevice device, mt_error *err)
{
    bool ok = true;
#define FIND(name) ok = ok && give(&d->name, d->GetDeviceProcAddr(device, "vk" #name), #name, err);
    MT_VK_DEVICE(FIND)
#undef FIND
    return ok;
}

const char *mt_vulkan_text(VkResult result)
{
    switch (result) {
    case VK_ERROR_DEVICE_LOST: return "the device is lost";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "the device has no memory left";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "the host has no memory left";
    case VK_ERROR_INITIALIZATION_FAILED: return "it does not start";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "no driver is installed (vulkaninfo says more)";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "an extension is missing";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "a feature is missing";
    case VK_TIMEOUT: return "it does not end";
    default: return "an unknown error";
    }
}
