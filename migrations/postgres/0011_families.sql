-- Open children, which every sweep looks through: apart from those that have ended, and from all who have no parent.
CREATE INDEX taskbell_tasks_open_children ON taskbell_tasks (parent, state, id) WHERE parent IS NOT NULL AND active = 1;
