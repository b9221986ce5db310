/* In the place of the Vulkan device where motet is built without it: a backend without a name, which nothing opens. */
#include "device/backend.h"

const mt_backend mt_backend_vulkan;
