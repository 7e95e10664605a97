from types import SimpleNamespace

_DEFAULTS = dict(
    grammar_backend="xgrammar", reasoning_parser=None, enable_strict_thinking=False, constrained_json_disable_any_whitespace=False,
    constrained_json_whitespace_pattern=None, constrained_json_max_whitespace_cnt=None,
)
_serving = SimpleNamespace(**_DEFAULTS)


class _Override:
    def __init__(self, fields):
        self._fields = fields

    def install(self):
        vars(_serving).update(self._fields)

    def restore(self):
        vars(_serving).update(_DEFAULTS)


def get_context():
    return SimpleNamespace(override_server_args=lambda **fields: _Override(fields))


def get_serving():
    return _serving


def get_exec():
    return SimpleNamespace(kernel=SimpleNamespace(grammar_backend=_serving.grammar_backend))
