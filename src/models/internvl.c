/* InternVL: one of several text models with InternVL's vision (vision_internvl.c). */
#include "models/family.h"

const mt_family mt_family_internvl = {
    .name = "internvl",
    .vision = &mt_vision_internvl,
    .beneath = {&mt_family_qwen2, &mt_family_qwen3, &mt_family_qwen3_moe, &mt_family_gpt_oss, &mt_family_llama}};
