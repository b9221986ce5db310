/* The queue of the Vulkan device: commands are recorded in lists, which run one after the other. A semaphore counts
   those that have run. Every command waits for all before it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "device/vulkan/vulkan.h"

enum { PATIENCE_NS = 600000000 }; /* of one wait; the driver itself ends what hangs */

bool mt_vulkan_ok(mt_device *dev, VkResult result, const char *what)
{
    if (result == VK_SUCCESS || dev->failed)
        return !dev->failed;
    dev->failed = true;
    snprintf(dev->why, sizeof(dev->why), "%.100s cannot %s: %s", dev->name, what, mt_vulkan_text(result));
    mt_log_error("device.lost", "%s", dev->why);
    return false;
}

static void wait_for(mt_device *dev, uint64_t value)
{
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &dev->semaphore,
                                      .pValues = &value};
    VkResult result = VK_TIMEOUT;
    while (!dev->failed && dev->ended < value && result == VK_TIMEOUT)
        result = dev->vk.WaitSemaphores(dev->device, &info, PATIENCE_NS);
    if (dev->ended < value && mt_vulkan_ok(dev, result, "compute"))
        dev->ended = value;
}

VkCommandBuffer mt_vulkan_record(mt_device *dev)
{
    mt_vulkan_list *list = &dev->list[dev->submitted % MT_VULKAN_LISTS];
    if (dev->commands == MT_VULKAN_COMMANDS) {
        mt_vulkan_submit(dev);
        list = &dev->list[dev->submitted % MT_VULKAN_LISTS];
    }
    if (dev->failed)
        return NULL;
    if (dev->commands == 0) {
        const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                                .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
        wait_for(dev, list->ends);
        if (dev->failed || !mt_vulkan_ok(dev, dev->vk.BeginCommandBuffer(list->commands, &begin), "begin a list"))
            return NULL;
    }
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
                                                      VK_ACCESS_HOST_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                                      VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    const VkPipelineStageFlags work = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    dev->vk.CmdPipelineBarrier(list->commands, work | VK_PIPELINE_STAGE_HOST_BIT, work, 0, 1, &barrier, 0, NULL, 0,
                               NULL);
    dev->commands++;
    return list->commands;
}

void mt_vulkan_submit(mt_device *dev)
{
    mt_vulkan_list *list = &dev->list[dev->submitted % MT_VULKAN_LISTS];
    if (dev->commands == 0 || dev->failed)
        return;
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT};
    dev->vk.CmdPipelineBarrier(list->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                               VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    const uint64_t value = dev->submitted + 1;
    const VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                    .signalSemaphoreValueCount = 1,
                                                    .pSignalSemaphoreValues = &value};
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .pNext = &timeline,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &list->commands,
                                 .signalSemaphoreCount = 1,
                                 .pSignalSemaphores = &dev->semaphore};
    if (!mt_vulkan_ok(dev, dev->vk.EndCommandBuffer(list->commands), "end a list") ||
        !mt_vulkan_ok(dev, dev->vk.QueueSubmit(dev->queue, 1, &submit, VK_NULL_HANDLE), "take work"))
        return;
    list->ends = value;
    dev->submitted = value;
    dev->commands = 0;
}

void mt_vulkan_finish(mt_device *dev)
{
    mt_vulkan_submit(dev);
    wait_for(dev, dev->submitted);
    dev->staged = 0;
}

static bool make_pipeline(mt_device *dev, mt_vulkan_shader shader)
{
    const mt_vulkan_code *code = &mt_vulkan_codes[shader];
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = code->bytes, .pCode = code->words};
    VkShaderModule module = VK_NULL_HANDLE;
    if (!mt_vulkan_ok(dev, dev->vk.CreateShaderModule(dev->device, &info, NULL, &module), "read a shader"))
        return false;
    const VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = dev->layout};
    const bool ok = mt_vulkan_ok(
        dev, dev->vk.CreateComputePipelines(dev->device, VK_NULL_HANDLE, 1, &pipeline, NULL, &dev->pipeline[shader]),
        "compile a shader");
    dev->vk.DestroyShaderModule(dev->device, module, NULL);
    return ok;
}

void mt_vulkan_run(mt_device *dev, mt_vulkan_shader shader, const void *arguments, size_t bytes, size_t x, size_t y,
                   size_t z)
{
    assert(bytes <= MT_VULKAN_ARGUMENTS && bytes % 4 == 0);
    if (x == 0 || y == 0 || z == 0 || dev->failed || (!dev->pipeline[shader] && !make_pipeline(dev, shader)))
        return;
    const VkCommandBuffer commands = mt_vulkan_record(dev);
    if (!commands)
        return;
    dev->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dev->pipeline[shader]);
    dev->vk.CmdPushConstants(commands, dev->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)bytes, arguments);
    dev->vk.CmdDispatch(commands, (uint32_t)x, (uint32_t)y, (uint32_t)z);
}
