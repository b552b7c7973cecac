"""What generates tokens: a contract, and the engines that keep it."""
