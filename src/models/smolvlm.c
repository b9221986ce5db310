/* SmolVLM: Llama's text model with SmolVLM's vision (vision_smolvlm.c). */
#include "models/family.h"

const mt_family mt_family_smolvlm = {.name = "smolvlm", .vision = &mt_vision_smolvlm, .beneath = {&mt_family_llama}};
