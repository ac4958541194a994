"""A library of standard cells that tests make: the area of a cell is that of its transistors."""

__all__ = ["SQUARE_UM", "made_liberty"]

#: Square micrometres of a transistor.
_TRANSISTOR = 0.2
#: Function and transistors of each gate.
_GATES = {
    "INV": ("!A", 2),
    "BUF": ("A", 4),
    "NAND2": ("!(A & B)", 4),
    "NOR2": ("!(A | B)", 4),
    "AND2": ("A & B", 6),
    "OR2": ("A | B", 6),
    "XOR2": ("A ^ B", 10),
    "XNOR2": ("!(A ^ B)", 10),
    "AOI21": ("!((A & B) | C)", 6),
    "OAI21": ("!((A | B) & C)", 6),
    "MUX2": ("(A & !C) | (B & C)", 12),
}
#: Next state and transistors of each flip-flop.
_REGISTERS = {"DFF": ("D", 24), "DFFE": ("(D & E) | (IQ & !E)", 34)}
#: Area of each cell.
SQUARE_UM = {
    name: round(_TRANSISTOR * transistors, 3)
    for name, (_, transistors) in (_GATES | _REGISTERS).items()
}


def made_liberty() -> str:
    """Text of the library."""
    lines = ["library (made) {"]
    for name, (function, _) in _GATES.items():
        lines.append(f"  cell ({name}) {{ area : {SQUARE_UM[name]};")
        pins = [pin for pin in "ABC" if pin in function]
        lines += [f"    pin ({pin}) {{ direction : input; }}" for pin in pins]
        lines.append(f'    pin (Y) {{ direction : output; function : "{function}"; }} }}')
    for name, (state, _) in _REGISTERS.items():
        lines.append(f"  cell ({name}) {{ area : {SQUARE_UM[name]};")
        lines.append(f'    ff (IQ, IQN) {{ clocked_on : "C"; next_state : "{state}"; }}')
        lines.append("    pin (C) { direction : input; clock : true; }")
        pins = [pin for pin in "DE" if pin in state]
        lines += [f"    pin ({pin}) {{ direction : input; }}" for pin in pins]
        lines.append('    pin (Q) { direction : output; function : "IQ"; } }')
    return "\n".join([*lines, "}", ""])
