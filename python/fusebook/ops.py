"""Operations on the elements that the function of a foreach_map is given."""

from . import _core

globals().update({name: function
                  for name, function in vars(_core.ops).items()
                  if not name.startswith("_")})
