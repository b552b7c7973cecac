"""Why a step costs what it costs: function by function, and of two versions beside each other."""
