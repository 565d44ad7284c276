/* The version of the library, as it was built. It is part of every plan, and of what makes two runs
 * comparable: same model, options and version give the same bytes. */
#include "cutset.h"

const char *cutset_version_string(void) { return CUTSET_VERSION; }
