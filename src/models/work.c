/* Working tensors that layers share (decoder_inside.h): those of one role and width are one tensor. */
#include "models/decoder_inside.h"

void mt_decoder_work(mt_model *m, mt_decoder_layer *l, mt_role role, size_t cols, size_t slices)
{
    size_t i = 0;
    while (i < m->works && (m->work[i].role != role || m->work[i].cols != cols || m->work[i].tensor.slices != slices))
        i++;
    if (i == m->works)
        m->work[m->works++] =
            (mt_work_tensor){role, cols, mt_shared_new(m->set, m->dev, NULL, m->max_rows, cols, slices)};
    l->all[role] = m->work[i].tensor;
    l->in[role] = l->all[role].own;
}
