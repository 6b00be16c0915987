import './base.css';
import './form.css';
import './log.css';
import './access.css';
