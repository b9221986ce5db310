/* MiniCPM-V 4.6: Qwen3.5's text model with MiniCPM's vision (vision_minicpm.c). */
#include "models/family.h"

const mt_family mt_family_minicpmv4_6 = {
    .name = "minicpmv4_6",
    .vision = &mt_vision_minicpm,
    .beneath = {&mt_family_qwen3_5_text, &mt_family_qwen3_5_moe_text, &mt_family_qwen3, &mt_family_llama}};
