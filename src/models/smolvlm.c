/* SmolVLM and Idefics3: Llama's text model with their vision (vision_smolvlm.c). */
#include "models/family.h"

const mt_family mt_family_smolvlm = {.name = "smolvlm", .vision = &mt_vision_smolvlm, .beneath = {&mt_family_llama}};
const mt_family mt_family_idefics3 = {.name = "idefics3", .vision = &mt_vision_idefics3, .beneath = {&mt_family_llama}};
