"""Getting attention weights out of a running network, exactly."""
