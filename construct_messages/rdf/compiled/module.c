/* The module construct_messages.rdf.compiled._wire: its functions and its start. It has no state. */

#include "wire.h"

static PyMethodDef methods[] = {
    {"are_distinct", are_distinct, METH_O, NULL},
    {"columns", columns, METH_VARARGS, NULL},
    {"count_canonical", count_canonical, METH_VARARGS, NULL},
    {"jelly_rows", jelly_rows, METH_VARARGS, NULL},
    {"jelly_statements", jelly_statements, METH_VARARGS, NULL},
    {"lines_of", lines_of, METH_O, NULL},
    {"statements", statements, METH_VARARGS, NULL},
    {"turtle_messages", turtle_messages, METH_VARARGS, NULL},
    {"turtle_statements", turtle_statements, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* The same as INTERFACE of __init__.py. */
static int add_interface(PyObject *module)
{
    return PyModule_AddIntConstant(module, "INTERFACE", 8);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_interface}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_wire", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__wire(void)
{
    return PyModuleDef_Init(&definition);
}
